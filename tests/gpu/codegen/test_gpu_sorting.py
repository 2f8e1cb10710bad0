"""Sorting on a device: NumPy's stable order, to the bit, for every dtype and kind of kernel."""

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.sorting import DTYPES, order_of, values
from tracegraph.arrays.eager import apply
from tracegraph.ops.sorting import argsort, sort

SHAPES = (
    *((n,) for n in (0, 1, 2, 31, 32, 33, 1000, 2048, 8192, 8193, 100_000)),
    *((1000, 37), (3, 50_000), (2, 3, 700), (500, 8), (0, 5), (7, 0)),
)
LONG = (2**20 + 3,)
BY_WIDTH = {dtype.itemsize: dtype for dtype in reversed(DTYPES)}
"""One dtype of each size, arrays of which are sorted that NumPy takes a while for."""


def all_of_them(arrays):
    return [(apply(sort, x), apply(argsort, x)) for x in arrays]


def given(dtype):
    shapes = (*SHAPES, LONG) if dtype in BY_WIDTH.values() else SHAPES
    return [values(dtype, shape, seed=k) for k, shape in enumerate(shapes)]


def check(found, arrays):
    for (ordered, order), x in zip(found, arrays, strict=True):
        wanted = order_of(x)
        np.testing.assert_array_equal(order, wanted, err_msg=str(x.shape))
        in_order = np.take_along_axis(x, wanted, -1)
        assert np.asarray(ordered).tobytes() == in_order.tobytes(), x.shape


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_shapes_are_sorted_stably(dtype):
    arrays = given(dtype)
    program = tracegraph.jit(all_of_them, device="cuda")
    first, *others = [program(arrays) for _ in range(3)]  # each launch clears its counters
    check(first, arrays)
    for other in others:
        for one, another in zip(*map(tracegraph.tree.leaves, (first, other)), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(another).tobytes(), one.shape


@pytest.mark.parametrize("length", [1000, 300_000])
def test_skewed_keys(length):
    """Keys with one digit in common, all equal, in order already, and in reverse."""
    arrays = [
        np.zeros(length, np.float32),
        np.full(length, np.nan, np.float32),
        np.arange(length, dtype=np.int64),
        np.arange(length, dtype=np.int64)[::-1].copy(),
        (np.arange(length) % 3).astype(np.int32),
        np.repeat(np.array([2.5, -0.0, 0.0, -1.0]), length // 4),
    ]
    check(tracegraph.jit(all_of_them, device="cuda")(arrays), arrays)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_axes_and_descending_order(axis):
    x = values(np.float32, (300, 401))
    found = tracegraph.jit(
        lambda x: (
            np.sort(x, axis),
            np.argsort(x, axis),
            tnp.argsort(x, axis, descending=True),
        ),
        device="cuda",
    )(x)
    np.testing.assert_array_equal(found[0], np.sort(x, axis, kind="stable"))
    np.testing.assert_array_equal(found[1], np.argsort(x, axis, kind="stable"))
    np.testing.assert_array_equal(found[2], tnp.argsort(x, axis, descending=True))


def steps(x, n):
    """Sorts in a loop, in both branches of a cond, and of another row in each step."""

    def step(i, carry):
        x, total = carry
        ordered = np.sort(x, axis=-1)
        order = tracegraph.cond(i % 2 == 0, lambda: np.argsort(x), lambda: np.argsort(-x))
        return ordered[:, ::-1] * 3 % 1009 + i, total + order

    return tracegraph.fori_loop(0, n, step, (x, np.zeros(x.shape, np.int64)))


@pytest.mark.parametrize("shape", [(5, 20), (4, 1500), (2, 40_000)], ids=str)
def test_sorts_in_loops_and_branches(shape):
    x = values(np.int32, shape) % 100_000
    expected = tracegraph.jit(steps, device="host")(x, 5)
    program = tracegraph.jit(steps, device="cuda")
    for _ in range(2):
        for found, wanted in zip(program(x, 5), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("length", [30, 3000, 30_000])
def test_sorts_while_a_condition_holds(length):
    def until_sorted(x):
        def unsorted(carry):
            x, _ = carry
            return np.any(x[1:] < x[:-1])

        def step(carry):
            x, count = carry
            return np.sort(x), count + 1

        return tracegraph.while_loop(unsorted, step, (x, 0))

    x = values(np.int64, (length,)) % 1000
    ordered, count = tracegraph.jit(until_sorted, device="cuda")(x)
    np.testing.assert_array_equal(ordered, np.sort(x))
    assert count == 1


def test_sorts_in_scans():
    def step(carry, row):
        ordered = np.sort(row)
        return carry + ordered, np.argsort(row)

    x = np.random.default_rng(0).normal(size=(6, 12_000))
    program = tracegraph.jit(lambda x: tracegraph.scan(step, np.zeros(12_000), x), device="cuda")
    total, orders = program(x)
    np.testing.assert_allclose(total, np.sort(x).sum(0), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(orders, np.argsort(x))


@pytest.mark.parametrize("length", [16, 900, 20_000])
def test_lanes_and_derivatives(length):
    x = np.random.default_rng(1).normal(size=(5, length))
    weights = np.arange(length) / length
    found = tracegraph.jit(tracegraph.vmap(np.sort), device="cuda")(x)
    np.testing.assert_array_equal(found, np.sort(x))
    gradient = tracegraph.grad(lambda x: (np.sort(x) * weights).sum())
    found = tracegraph.jit(gradient, device="cuda")(x)
    np.testing.assert_array_equal(found, weights[np.argsort(np.argsort(x))])


def test_medians_and_quantiles():
    x = values(np.float32, (7, 3001))
    x[:, ::5] = np.nan

    def program(x):
        return (
            np.median(x, 1),
            np.nanmedian(x, 1),
            np.quantile(x[0], [0.1, 0.9]),
            np.nanquantile(x, 0.3, axis=1),
            np.percentile(np.nan_to_num(x), 25, method="hazen"),
        )

    with np.errstate(all="ignore"):
        expected = tracegraph.jit(program, device="host")(x)
    for found, wanted in zip(tracegraph.jit(program, device="cuda")(x), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_distinct_elements_and_permutations():
    x = values(np.int16, (50_000,)) % 500

    def program(x, key):
        return (
            tnp.unique(x, True, True, True, size=1200),
            tnp.intersect1d(x[:20_000], x[20_000:] + 3, size=900),
            np.isin(x, x[:100]),
            tracegraph.random.permutation(key, 40_000),
            tracegraph.random.choice(key, 3000, (50,), replace=False),
        )

    key = tracegraph.random.key(3)
    expected = tracegraph.tree.leaves(tracegraph.jit(program, device="host")(x, key))
    found = tracegraph.tree.leaves(tracegraph.jit(program, device="cuda")(x, key))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("features", [{"body_updates": False}, {"programmatic_edges": False}])
def test_features_that_devices_lack(features, fresh):
    from lowering.plan.target.features import override

    x = values(np.int32, (2, 9000)) % 100_000
    expected = tracegraph.jit(steps, device="host")(x, 3)
    with override(**features):
        found = tracegraph.jit(steps, device="cuda")(x, 3)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
