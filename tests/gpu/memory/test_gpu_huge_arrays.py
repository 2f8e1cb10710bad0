"""Arrays of more elements than 32 bits count, each of one byte or two."""

import ml_dtypes
import numpy as np
import pytest

import tracegraph
from lowering.cuda.open_devices import open_device
from tests.helpers.compiled import gpu_jit
from tracegraph import numpy as tnp

SIZE = 2**31 + 3
SHAPE = (2**16 + 1, 2**15 + 1)  # just over 2**31, odd along both axes
PERIOD = 113  # a prime: no power of two comes back to the same value
FREE_BYTES = 24 << 30
WINDOW = 1000


@pytest.fixture(autouse=True)
def room():
    """Enough memory, and none of it kept for the next test."""
    from cuda.bindings import driver  # noqa: TID251 - asks, and changes nothing

    result, free, _ = driver.cuMemGetInfo()
    assert result == driver.CUresult.CUDA_SUCCESS
    if free < FREE_BYTES:
        pytest.skip(f"needs {FREE_BYTES} bytes of device memory, {free} are free")
    yield
    tracegraph.reset()


def counted(shape):
    """The position of each element modulo the period, as int8."""
    size = int(np.prod(shape))
    return gpu_jit(lambda: (tnp.arange(size) % PERIOD).astype(np.int8).reshape(shape))()


def assert_everywhere(array, expected):
    """`array` is flat; `expected` gives elements from positions. Looked at are both ends, and where
    positions no longer fit into 31 bits.
    """
    array.synchronize()
    last = array.size - WINDOW
    for start in (0, min(2**31 - WINDOW // 2, last), last):
        found = np.empty(WINDOW, array.dtype)  # all of the array would take a second to copy
        open_device(0).driver.copy_to_host(found, array.memory.pointer + start * found.itemsize)
        positions = np.arange(start, start + len(found))
        np.testing.assert_array_equal(found, expected(positions).astype(array.dtype))


def test_a_map():
    y = gpu_jit(lambda x: x * 2 + 1)(counted(SIZE))
    assert_everywhere(y, lambda i: i % PERIOD * 2 + 1)


def test_a_map_over_donated_memory():
    y = gpu_jit(lambda x: x + 1, donate_argnums=0)(counted(SIZE))
    assert_everywhere(y, lambda i: i % PERIOD + 1)


def test_reductions():
    total, largest = gpu_jit(
        lambda x, k: (np.sum(x), np.argmax(np.where(tnp.arange(SIZE) == k, 125, x)))
    )(counted(SIZE), np.int64(SIZE - 2))
    whole, rest = divmod(SIZE, PERIOD)
    assert int(total) == whole * sum(range(PERIOD)) + sum(range(rest))
    assert int(largest) == SIZE - 2


def test_reductions_along_axes():
    rows, columns = SHAPE
    of_rows, of_columns = gpu_jit(lambda x: (np.max(x, axis=1), np.sum(x, axis=0)))(counted(SHAPE))
    np.testing.assert_array_equal(np.asarray(of_rows), PERIOD - 1)
    last = (np.arange(rows) * columns + columns - 1) % PERIOD
    assert int(of_columns[columns - 1]) == last.sum()


def test_a_transposition():
    rows, columns = SHAPE
    y = gpu_jit(lambda x: (x.T + 1).reshape(-1))(counted(SHAPE))
    assert_everywhere(y, lambda i: (i % rows * columns + i // rows) % PERIOD + 1)


def test_a_running_sum():
    y = gpu_jit(lambda x: np.cumsum(x, dtype=np.int8))(gpu_jit(lambda: tnp.ones(SIZE, np.int8))())
    assert_everywhere(y, lambda i: (i + 1 + 128) % 256 - 128)


def test_elements_at_computed_positions():
    positions = np.array([0, 2**31 - 1, 2**31, SIZE - 1, -1, -SIZE])
    found = gpu_jit(lambda x, i: x[i])(counted(SIZE), positions)
    np.testing.assert_array_equal(np.asarray(found), positions % SIZE % PERIOD)


def test_elements_written_at_computed_positions():
    def write(x, i, values):
        y = x + 0
        y[i] = values
        return y

    positions, values = np.array([1, 2**31, SIZE - 1]), np.array([-1, -2, -3], np.int8)
    y = gpu_jit(write)(counted(SIZE), positions, values)

    def expected(i):
        chosen = [i == position for position in positions]
        return np.select(chosen, list(values), i % PERIOD)

    assert_everywhere(y, expected)


def test_a_matrix_product():
    ones = gpu_jit(lambda: tnp.ones(SIZE, ml_dtypes.bfloat16))()
    product = gpu_jit(lambda x: x @ x)(ones)
    assert float(np.asarray(product)) == 2**31
