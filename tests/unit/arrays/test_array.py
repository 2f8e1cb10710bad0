"""Array on the host and on a device that the host stands in for; NumPy says what is right."""

from __future__ import annotations

import copy
import operator
import pickle
import textwrap
from typing import Any

import numpy as np
import pytest

import tracegraph.numpy as tnp
from tests.fakes.fake_device import FakeBuffer, FakeCompiler
from tests.helpers.processes import end_of
from tests.helpers.threads import collect_garbage
from tracegraph import errors
from tracegraph.arrays import dlpack
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray, from_dlpack
from tracegraph.dtypes import bfloat16
from tracegraph.staging.jit import jit

pytestmark = pytest.mark.usefixtures("compiler")


def on_device(data: Any) -> Array:
    return Array(FakeBuffer(np.array(data), "fake:0"))


PLACES = pytest.mark.parametrize("place", [asarray, on_device])


# ---- making ----


def test_asarray_copies_what_others_may_write_to() -> None:
    data = np.arange(3.0)
    x = asarray(data)
    data[0] = 9
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert asarray(x) is x


@pytest.mark.parametrize(
    ("value", "dtype"),
    [([1, 2], "int64"), (3, "int64"), (2.5, "float64"), (np.float32(1), "float32"), (True, "bool")],
)
def test_asarray_has_numpy_types(value: Any, dtype: str) -> None:
    x = asarray(value)
    assert (x.dtype, x.shape) == (np.dtype(dtype), np.shape(value))
    assert not x.weak


def test_asarray_converts() -> None:
    x = asarray([1.9, -1.9], "int32")
    np.testing.assert_array_equal(x, np.array([1, -1], "int32"), strict=True)
    np.testing.assert_array_equal(asarray(x, bfloat16), np.array([1, -1], bfloat16), strict=True)
    assert asarray(np.arange(2, dtype=">i4")).dtype == np.dtype("int32")


@pytest.mark.parametrize("value", ["a", np.array(["a"]), np.array([None]), object(), ["a", 1]])
def test_asarray_refuses_what_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError):
        asarray(value)


def test_asarray_moves_between_devices() -> None:
    x = asarray([1.0, 2.0], device="fake:0")
    assert x.device == "fake:0"
    assert x.to_device("fake:0") is x
    back = x.to_device("host")
    assert back.device == "host"
    np.testing.assert_array_equal(back, [1.0, 2.0])


# ---- facts and elements ----


@PLACES
def test_facts(place: Any) -> None:
    data = np.zeros((2, 3), "float32")
    x = place(data)
    for fact in ("dtype", "shape", "ndim", "size", "itemsize", "nbytes"):
        assert getattr(x, fact) == getattr(data, fact)
    assert len(x) == 2
    assert x.device == ("host" if place is asarray else "fake:0")
    assert x.synchronize() is x


@PLACES
def test_elements_as_python_numbers(place: Any) -> None:
    assert float(place(2.5)) == 2.5
    assert int(place(7)) == 7
    assert complex(place(1 + 2j)) == 1 + 2j
    assert bool(place(0)) is False
    assert range(5)[place(3)] == 3
    assert place([[1, 2]]).tolist() == [[1, 2]]
    assert place([[1, 2]]).item(1) == 2
    assert type(place(3).item()) is int
    assert f"{place(1.23456):.2f}" == "1.23"
    assert 3 in place([1, 3])
    assert [int(v) for v in place([4, 5])] == [4, 5]


def test_elements_that_numpy_refuses() -> None:
    x = asarray([1.0, 2.0])
    for convert in (bool, float, int, operator.index):
        with pytest.raises((TypeError, ValueError)):
            convert(x)
    for use in (len, iter):
        with pytest.raises(TypeError, match="without axes"):
            use(asarray(1.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1.0, 2.0], "Array([1., 2.], dtype=float64)"),
        (np.float32(0.5), "Array(0.5, dtype=float32)"),
        (np.zeros((0, 2), bool), "Array([], shape=(0, 2), dtype=bool)"),
        ([[1, 2], [3, 4]], "Array([[1, 2],\n       [3, 4]], dtype=int64)"),
    ],
)
def test_repr(value: Any, text: str) -> None:
    assert repr(asarray(value)) == text
    assert str(asarray(value)) == str(np.asarray(value))


def test_repr_names_a_device() -> None:
    assert repr(on_device([1])) == "Array([1], dtype=int64, device='fake:0')"


# ---- immutability ----


def test_nothing_can_be_written() -> None:
    x = asarray([1, 2, 3])
    with pytest.raises(errors.ImmutableArrayError, match=r"\.at\[index\]\.set"):
        x[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5
    with pytest.raises(TypeError, match="immutable"):
        np.add(x, 1, out=x)
    y = x
    y += 1
    np.testing.assert_array_equal(x, [1, 2, 3])
    np.testing.assert_array_equal(y, [2, 3, 4])


WRITES: dict[str, Any] = {
    "add.at": lambda x: np.add.at(x, [0], 5),
    "maximum.at": lambda x: np.maximum.at(x, 0, 5),
    "negative.at": lambda x: np.negative.at(x, [1]),
    "logical_or.at": lambda x: np.logical_or.at(x, [0], 5),
    "add.at of a view": lambda x: np.add.at(x[1:], [0], 5),
    "copyto": lambda x: np.copyto(x, 5),
    "put": lambda x: np.put(x, [0], 9),
    "putmask": lambda x: np.putmask(x, [True] * 4, [9]),
    "place": lambda x: np.place(x, np.ones(4, bool), [9]),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([0]), 9, 0),
    "fill_diagonal": lambda x: np.fill_diagonal(x.reshape(2, 2), 9),
    "nan_to_num": lambda x: np.nan_to_num(x, copy=False),
    "tnp.put": lambda x: tnp.put(x, [0], 9),
    "tnp.copyto": lambda x: tnp.copyto(x, 9),
    "sum(out=)": lambda x: np.sum(x, axis=0, out=x),
    "clip(out=)": lambda x: np.clip(x, 0, 1, out=x),
    "x.clip(out=)": lambda x: x.clip(0, 1, out=x),
    "matmul(out=)": lambda x: np.matmul(np.eye(4), x, out=x),
    "divmod(out=)": lambda x: np.divmod(x, 2, out=(x, x)),
    "take(out=)": lambda x: np.take(np.arange(9), [1, 2, 3, 4], out=x),
    "concatenate(out=)": lambda x: np.concatenate([np.ones(4)], out=x),
    "sort": lambda x: x.sort(),
    "partition": lambda x: x.partition(1),
    "x.fill": lambda x: x.fill(1),
    "x.put": lambda x: x.put([0], 1),
    "x.resize": lambda x: x.resize(8),
    "x.flat": lambda x: x.flat.__setitem__(0, 9),
}


@PLACES
@pytest.mark.parametrize("name", WRITES)
def test_numpys_functions_do_not_write_to_it(place: Any, name: str) -> None:
    x = place([1, -2, 3, 0])
    with pytest.raises(errors.ImmutableArrayError, match=r"immutable: .* is not possible; .*"):
        WRITES[name](x)
    np.testing.assert_array_equal(x, [1, -2, 3, 0])


@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_it_is_not_shuffled_in_place() -> None:
    x = asarray([1, -2, 3, 0])
    with pytest.raises(errors.ImmutableArrayError):
        np.random.default_rng(0).shuffle(x)
    np.testing.assert_array_equal(x, [1, -2, 3, 0])


def test_what_it_exports_leaves_it_as_it_is() -> None:
    x = asarray([1.0, -2.0, 3.0, 0.0])
    for exported in (np.asarray(x), x.__array__(), np.from_dlpack(x), np.asarray(x[1:])):
        assert not exported.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            exported.flags.writeable = True
        with pytest.raises(ValueError, match="read-only"):
            exported.sort()
        with pytest.raises(TypeError, match="read-only"):
            memoryview(exported)[0] = 5
    np.asarray(x).shape = (2, 2)
    assert x.shape == np.asarray(x).shape == (4,)
    for own in (np.array(x), x.__array__(copy=True), np.require(x, requirements="W")):
        own[0] = 9
    np.testing.assert_array_equal(x, [1, -2, 3, 0])
    assert np.array(x, np.float32).dtype == np.asarray(x, np.float32).dtype == np.float32


def test_a_copy_outlives_donation() -> None:
    double = jit(lambda x: x * 2, donate_argnums=0, device="host")
    x = jit(lambda x: x + 1, device="host")(np.arange(3.0))
    copies = (x.copy(), asarray(x, copy=True), tnp.array(x), tnp.copy(x), copy.deepcopy(x))
    double(x)
    with pytest.raises(errors.DonatedArrayError):
        np.asarray(x)
    for each in copies:
        np.testing.assert_array_equal(each, [1, 2, 3])


@PLACES
def test_functional_update(place: Any) -> None:
    x = place([1, 2, 3])
    y = x.at[1].set(7)
    np.testing.assert_array_equal(y, [1, 7, 3])
    np.testing.assert_array_equal(x, [1, 2, 3])
    assert y.device == x.device


def test_copies_and_pickles() -> None:
    x = asarray([1.0, 2.0])
    for array in (x, on_device([1.0, 2.0])):
        for again in (copy.copy(array), copy.deepcopy([array])[0], array.copy(), tnp.copy(array)):
            assert again is not array
            assert again.type == array.type
            assert again.device == array.device
            np.testing.assert_array_equal(again, x, strict=True)
        again = pickle.loads(pickle.dumps(array))
        assert again.device == "host"
        np.testing.assert_array_equal(again, x, strict=True)


# ---- operators, NumPy's functions, indexing ----


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@PLACES
@pytest.mark.parametrize("operation", BINARY)
def test_binary_operators(place: Any, operation: Any) -> None:
    a, b = np.array([7, 2, 5]), np.array([2, 3, 1])
    want = operation(a, b)
    for got in (operation(place(a), place(b)), operation(place(a), b), operation(a, place(b))):
        assert isinstance(got, Array)
        np.testing.assert_array_equal(np.asarray(got), want, strict=True)
        assert got.device == place(a).device


@PLACES
def test_operators_with_python_numbers(place: Any) -> None:
    x = np.array([1, 2, 3], "float32")
    for use in (
        lambda v: v + 1,
        lambda v: 1 - v,
        lambda v: 2**v,
        lambda v: v // 2,
        lambda v: 5 % v,
        lambda v: divmod(v, 2)[1],
        lambda v: divmod(7, v)[0],
        lambda v: -v,
        lambda v: +v,
        lambda v: abs(v),
        lambda v: v > 1,
        lambda v: np.float32(2) == v,
    ):
        np.testing.assert_array_equal(np.asarray(use(place(x))), use(x), strict=True)


def test_operators_take_lists_and_leave_the_rest_to_the_other() -> None:
    np.testing.assert_array_equal(asarray([1, 2]) * [3, 4], [3, 8])
    np.testing.assert_array_equal([3, 4] - asarray([1, 2]), [2, 2])
    with pytest.raises(TypeError, match="unsupported operand"):
        asarray([1]) + "a"

    class Foreign:
        def __radd__(self, other: Any) -> str:
            return "mine"

    assert asarray([1]) + Foreign() == "mine"


METHODS = {
    "sum": lambda v: v.sum(),
    "sum axis": lambda v: v.sum(axis=0),
    "mean keepdims": lambda v: v.mean(1, keepdims=True),
    "max": lambda v: v.max(),
    "argmin": lambda v: v.argmin(axis=1),
    "any": lambda v: (v > 4).any(axis=0),
    "std": lambda v: v.std(),
    "cumsum": lambda v: v.cumsum(axis=1),
    "clip": lambda v: v.clip(1, 3),
    "astype": lambda v: v.astype("int32"),
    "reshape": lambda v: v.reshape(3, -1),
    "reshape tuple": lambda v: v.reshape((6,)),
    "transpose": lambda v: v.transpose(1, 0),
    "T": lambda v: v.T,
    "mT": lambda v: v.mT,
    "ravel": lambda v: v.ravel(),
    "flatten": lambda v: v.T.flatten(),
    "swapaxes": lambda v: v.swapaxes(0, 1),
    "squeeze": lambda v: v.reshape(1, 6).squeeze(),
    "dot": lambda v: v.dot(v.T),
    "copy": lambda v: v.copy(),
    "round": lambda v: (v / 3).round(1),
    "conj": lambda v: v.conj(),
    "real": lambda v: v.real,
    "imag": lambda v: v.imag,
    "take": lambda v: v.take([1, 0], axis=1),
    "repeat": lambda v: v.repeat(2, axis=0),
    "diagonal": lambda v: v.diagonal(),
    "trace": lambda v: v.trace(),
}


@PLACES
@pytest.mark.parametrize("name", METHODS)
def test_methods(place: Any, name: str) -> None:
    data = np.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    got, want = METHODS[name](place(data)), METHODS[name](data)
    assert isinstance(got, Array)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)


@PLACES
def test_numpy_functions(place: Any) -> None:
    data = np.array([[3.0, 1.0], [6.0, 5.0]])
    for use in (
        np.sin,
        np.negative,
        lambda v: np.add(v, data),
        lambda v: np.where(v > 2, v, 0.0),
        lambda v: np.concatenate([v, data]),
        lambda v: np.sum(v, axis=0),
        lambda v: np.stack((v, v), axis=1),
    ):
        got, want = use(place(data)), use(data)
        assert isinstance(got, Array)
        assert got.device == place(data).device
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15)
    assert np.shape(place(data)) == (2, 2)


def test_all_of_numpy_works_on_the_host() -> None:
    data = np.array([[3.0, 1.0], [1.0, 5.0]])
    values, vectors = np.linalg.eigh(asarray(data))
    assert isinstance(values, Array)
    np.testing.assert_array_equal(vectors, np.linalg.eigh(data)[1])
    np.testing.assert_array_equal(np.add.reduce(asarray(data), axis=1), [4, 6])
    np.testing.assert_array_equal(np.sort(asarray([3, 1, 2])), [1, 2, 3])
    assert np.allclose(asarray(data), data) is True
    out = np.empty(2)
    assert np.sqrt(asarray([4.0, 9.0]), out=out) is out
    np.testing.assert_array_equal(out, [2, 3])


def test_what_a_device_lacks_is_named() -> None:
    with pytest.raises(TypeError, match=r"numpy\.roots, .*not available.*numpy\.asarray"):
        np.roots(on_device([3, 1]))


def test_device_arrays_are_not_read_by_operations() -> None:
    x = on_device([1.0, 2.0])
    y = (np.sin(x) + x * 2).sum()
    assert y.device == "fake:0"
    assert (x.data.reads, y.data.reads) == (0, 0)


def test_repeated_eager_operations_compile_once(compiler: FakeCompiler) -> None:
    from tracegraph.arrays.device_calls import compiled_op

    compiled_op.cache_clear()
    x = on_device([1.0, 2.0])
    for _ in range(3):
        x = x + 1
    assert len(compiler.backends["fake:0"].compiled) == 1
    x + 1j
    assert len(compiler.backends["fake:0"].compiled) == 2
    compiled_op.cache_clear()


def test_device_arrays_meet_while_a_function_is_traced() -> None:
    weights = on_device([1.0, 2.0])

    @jit
    def f(x: Any) -> Any:
        halved = weights / 2 + asarray(weights, device="host")
        assert isinstance(halved, Array)  # nothing here is traced
        return x * halved

    np.testing.assert_array_equal(f(np.array([1.0, 10.0])), [1.5, 30.0])


def test_weak_arrays_count_as_python_numbers() -> None:
    weak = Array(np.asarray(2), weak=True)
    for got, want in (
        (weak + np.float32(1), np.float32(3)),
        (np.int8(3) * weak, np.int8(6)),
        (np.multiply(weak, np.int8(3)), np.int8(6)),
        (np.sin(weak), np.sin(2)),
    ):
        np.testing.assert_array_equal(np.asarray(got), want, strict=True)
    assert (weak + 1).weak
    assert (weak / 4).weak
    assert not np.sin(weak).weak
    assert not (weak + np.int64(1)).weak


INDICES = [
    1,
    -1,
    slice(None, None, -1),
    (0, slice(1, None)),
    (..., None, 1),
    [1, 0],
    (slice(None), [2, 0, 2]),
    np.array([1, 1]),
    np.array([[True, False, True], [False, True, True]]),
]


@PLACES
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing(place: Any, index: Any) -> None:
    data = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(place(data)[index]), data[index], strict=True)


@PLACES
def test_indexing_with_arrays(place: Any) -> None:
    data = np.arange(6.0).reshape(2, 3)
    x = place(data)
    np.testing.assert_array_equal(x[place([1, 0])], data[[1, 0]])
    np.testing.assert_array_equal(x[x > 2], data[data > 2])
    np.testing.assert_array_equal(x[:, : place(2)], data[:, :2])
    with pytest.raises(IndexError):
        x[5]


# ---- exchange ----


def test_asarray_of_an_array_shares_memory_on_the_host() -> None:
    x = asarray([1.0, 2.0])
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    copied = np.array(x)
    copied[0] = 5
    assert float(x[0]) == 1.0
    assert np.asarray(x, "float32").dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        np.asarray(on_device([1]), copy=False)


def test_dlpack_on_the_host() -> None:
    x = asarray(np.arange(6.0).reshape(2, 3))
    assert x.__dlpack_device__() == (1, 0)
    seen = np.from_dlpack(x)
    assert np.shares_memory(seen, np.asarray(x))
    assert not seen.flags.writeable
    capsule_copy = np.from_dlpack(_Legacy(x))  # cannot be told that memory is read-only
    assert not np.shares_memory(capsule_copy, np.asarray(x))
    np.testing.assert_array_equal(capsule_copy, x)


class _Legacy:
    """An exporter that knows nothing of DLPack 1.0."""

    def __init__(self, x: Array) -> None:
        self.x = x

    def __dlpack__(self, **_: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_from_dlpack_copies() -> None:
    data = np.arange(3.0)
    x = from_dlpack(data)
    data[0] = 7
    np.testing.assert_array_equal(x, [0, 1, 2])
    with pytest.raises(TypeError, match="__dlpack__"):
        from_dlpack([1, 2])


class _HostMemory(FakeBuffer):
    """A buffer whose exported device is the host, so that NumPy can look into the capsule."""


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_device_capsule_describes_the_memory(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "device_of", lambda device: (1, 0))
    data = np.ones((2, 3), dtype)
    x = Array(_HostMemory(data, "cuda:0"))
    seen = np.from_dlpack(x)
    np.testing.assert_array_equal(seen, data, strict=True)
    assert seen.ctypes.data == x.data.pointer
    assert x.data.waits == 0
    assert x.data.consumers == [1]
    buffer = x.data
    del x
    collect_garbage()
    assert any(buffer in kept for kept in dlpack._exported.values())
    del seen
    collect_garbage()
    assert not any(buffer in kept for kept in dlpack._exported.values())


def test_unused_device_capsule_is_dropped() -> None:
    x = Array(FakeBuffer(np.ones(3), "cuda:1"))
    assert x.__dlpack_device__() == (2, 1)
    before = len(dlpack._exported)
    capsule = x.__dlpack__(stream=-1)
    assert len(dlpack._exported) == before + 1
    assert x.data.waits == 0
    del capsule
    assert len(dlpack._exported) == before


@pytest.mark.parametrize("taken", [False, True])
def test_what_is_exported_may_outlive_the_interpreter(taken: bool) -> None:
    code = f"""
        import sys, _thread
        import numpy as np
        from tests.fakes.fake_device import FakeBuffer
        from tracegraph.arrays import dlpack
        from tracegraph.arrays.array import Array
        dlpack.device_of = lambda device: (1, 0)
        x = Array(FakeBuffer(np.ones(3), "cuda:0"))
        _thread.kept = np.from_dlpack(x) if {taken} else x.__dlpack__(stream=-1)
    """
    assert end_of(textwrap.dedent(code)) == (0, "", "")


def test_device_capsule_refuses_what_it_cannot_do() -> None:
    x = Array(FakeBuffer(np.ones(3), "cuda:1"))
    with pytest.raises(BufferError, match="in place only"):
        x.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="in place only"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="only by a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    np.testing.assert_array_equal(np.from_dlpack(x, device="cpu"), np.ones(3))
    with pytest.raises(BufferError, match="fake:0"):
        on_device([1]).__dlpack_device__()


def test_cuda_array_interface_is_on_devices_only() -> None:
    x = Array(FakeBuffer(np.ones((2, 3)), "cuda:0"))
    interface = x.__cuda_array_interface__
    assert (interface["version"], interface["shape"]) == (3, (2, 3))
    assert interface["data"][0] == x.data.pointer
    assert not hasattr(asarray([1]), "__cuda_array_interface__")


def test_arrays_have_the_memory_of_ndarrays_on_the_host() -> None:
    given = np.arange(6.0).reshape(2, 3)
    x = asarray(given)
    assert x.strides == given.strides
    assert x.tobytes("F") == given.tobytes("F")
    assert not x.flags.writeable
    assert x.ctypes.data == np.asarray(x).ctypes.data
    joined = np.concatenate([np.array([None], object), x[0]])
    assert joined.tolist() == [None, 0, 1, 2]
