"""Each kind of node computes what NumPy computes."""

import ml_dtypes
import numpy as np
import pytest

import tracegraph

RANDOM = np.random.default_rng(1)


def check(fun, *args, rtol=1e-12, atol=0.0):
    expected = fun(*args)
    got = tracegraph.jit(fun, device="cuda")(*args)
    assert got.device == "cuda:0"
    host = np.asarray(got)
    assert host.dtype == expected.dtype
    np.testing.assert_allclose(host, expected, rtol=rtol, atol=atol)


def test_elementwise_kernel():
    x, y = RANDOM.standard_normal((300, 70)), RANDOM.standard_normal(70)
    check(lambda x, y: np.exp(-x * x) + np.where(y > 0, np.sqrt(np.abs(y)), 3.0), x, y)


@pytest.mark.parametrize("shape", [(), (1,), (1025,), (3, 5, 7), (2_000_000,)])
def test_shapes_of_a_map(shape):
    check(lambda x: x * 2 + 1, np.asarray(RANDOM.standard_normal(shape)))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2)])
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_reduction_kernel(name, axis):
    x = RANDOM.uniform(0.99, 1.01, (33, 65, 17))  # products stay in range
    check(lambda x: getattr(np, name)(x, axis=axis), x, rtol=1e-9)


def test_a_reduction_of_many_blocks_gives_the_same_on_every_launch():
    x = RANDOM.standard_normal(3_000_000)
    total = tracegraph.jit(np.sum, device="cuda")
    results = {float(total(x)) for _ in range(5)}
    assert len(results) == 1
    np.testing.assert_allclose(results.pop(), np.sum(x), rtol=1e-9)


def test_scan_kernel():
    check(lambda x: np.cumsum(x, axis=1), RANDOM.standard_normal((5, 3000)), rtol=1e-9, atol=1e-9)


def test_integers_wrap():
    x = np.array([2**63 - 1, -(2**63), 7], np.int64)
    check(lambda x: x * x + 1, x)


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [
        (np.float64, 1e-12),
        (np.float32, 1e-4),
        (np.float16, 2e-2),
        (ml_dtypes.bfloat16, 1e-1),
        (np.complex64, 1e-4),
        (np.complex128, 1e-12),
    ],
)
def test_library_node(dtype, rtol):
    x = RANDOM.uniform(0.5, 1.5, (33, 65)).astype(dtype)
    y = RANDOM.uniform(0.5, 1.5, (65, 17)).astype(dtype)
    exact = x.astype(np.complex128) @ y.astype(np.complex128)
    got = np.asarray(tracegraph.jit(lambda x, y: x @ y, device="cuda")(x, y))
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got.astype(np.complex128), exact, rtol=rtol)


def test_a_float32_product_is_not_tf32():
    x = RANDOM.standard_normal((256, 256)).astype(np.float32)
    y = RANDOM.standard_normal((256, 256)).astype(np.float32)
    got = np.asarray(tracegraph.jit(lambda x, y: x @ y, device="cuda")(x, y))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    scale = np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64)
    assert np.max(np.abs(got - exact) / scale) < 2**-20


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_views(transposed):
    x, y = RANDOM.standard_normal((40, 40)), RANDOM.standard_normal((40, 40))

    def product(x, y):
        left = x.T if transposed[0] else x
        right = y.T if transposed[1] else y
        return (left + 0.0) @ right

    check(product, x, y, rtol=1e-10)


def test_batched_and_chained_products():
    x, y = RANDOM.standard_normal((6, 40, 33)), RANDOM.standard_normal((6, 33, 41))
    check(lambda x, y: (x @ y) @ np.transpose(y, (0, 2, 1)), x, y, rtol=1e-9, atol=1e-12)


def test_independent_products_in_one_graph():
    x, y = RANDOM.standard_normal((64, 64)), RANDOM.standard_normal((64, 64))
    check(lambda x, y: (x @ y) + (y @ x) + (x @ x), x, y, rtol=1e-9, atol=1e-10)


def test_an_output_that_is_an_input_and_one_twice():
    x = RANDOM.standard_normal(100)
    same, doubled, again = tracegraph.jit(lambda x: (x, x * 2, x), device="cuda")(x)
    np.testing.assert_array_equal(np.asarray(same), x)
    np.testing.assert_array_equal(np.asarray(doubled), x * 2)
    np.testing.assert_array_equal(np.asarray(again), x)


def test_an_odd_number_of_bytes_is_copied():
    x = RANDOM.integers(0, 100, 1001).astype(np.int8)
    np.testing.assert_array_equal(np.asarray(tracegraph.jit(lambda x: x, device="cuda")(x)), x)


def test_empty_arrays():
    got = tracegraph.jit(lambda x: x + 1, device="cuda")(np.zeros((0, 3)))
    assert np.asarray(got).shape == (0, 3)
    total = tracegraph.jit(lambda x: np.sum(x, axis=0), device="cuda")(np.zeros((0, 3)))
    np.testing.assert_array_equal(np.asarray(total), np.zeros(3))


def twice_summed(x):
    """Running sums of running sums: two kernels of one thread that works, for halves in order."""
    return np.cumsum(np.cumsum(x, dtype=x.dtype), dtype=x.dtype)


def test_a_kernel_waits_for_a_slow_one_that_let_it_be_launched():
    summed = tracegraph.jit(twice_summed, device="cuda")
    first = [tracegraph.asarray(np.zeros(2000, np.float16), device="cuda") for _ in range(2)]
    first[1] = first[1].at[0].set(1)
    expected = np.arange(1, 2001)
    for number in range(100):
        which = number % 2
        np.testing.assert_array_equal(np.asarray(summed(first[which])), expected * which)


def test_the_edges_of_kernels_are_programmatic_unless_told_otherwise(monkeypatch):
    def exported():
        compiled = tracegraph.jit(twice_summed, device="cuda").lower(x).compile()
        return compiled.export_graph(x).definition

    x = np.ones(100, np.float16)
    with pytest.raises(Exception, match="CUDA_ERROR_LOSSY_QUERY"):  # it asks for pairs of nodes
        exported().edges()
    monkeypatch.setenv("TRACEGRAPH_FEATURES", "no-programmatic-edges")
    assert len(exported().edges()) == 1
