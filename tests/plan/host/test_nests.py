"""The host backend on nests written by hand: each kind of load, store, fold, and overlap."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tracegraph
import tracegraph.ops
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nests.kernel import (
    Accumulator,
    MapNest,
    ReduceNest,
    ScanNest,
    ScatterNest,
    Store,
)
from lowering.plan.nodes import LibraryNode, MemcpyNode
from tests.cases.host_nests import F64, ap, axes, buffer, run
from tracegraph.ir.combiners import ADD, MAXIMUM, MULTIPLY
from tracegraph.ir.scalar import clamp, const, select
from tracegraph.ir.scalar_values import Accumulated, Load, as_index, as_value


def mapped(x, value, *shape, guard=None, dtype=F64):
    """The array that a map of one store makes from input x."""
    out, source = (
        buffer("output", 0, *shape, dtype=dtype),
        buffer("input", 0, *x.shape, dtype=x.dtype),
    )
    store = Store(out, axes(*shape), value(source, *axes(*shape)), guard)
    return run([MapNest(shape, (store,))], (source,), (out,), [x])[0]


X = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    ("shape", "index", "expected"),
    [
        ((4, 6), lambda i, j: (i, j), X),
        ((6, 4), lambda i, j: (j, i), X.T),
        ((4, 6), lambda i, j: (3 - i, 5 - j), X[::-1, ::-1]),
        ((2, 3), lambda i, j: (i * 2 + 1, j * 2), X[1::2, ::2]),
        ((5, 6), lambda i, j: (const(2), j), np.tile(X[2], (5, 1))),
        ((4, 6), lambda i, j: ((i + 3) % 4, j), np.roll(X, 1, 0)),
        ((4, 6), lambda i, j: (i, clamp(j - 2, 0, 5)), X[:, [0, 0, 0, 1, 2, 3]]),
        ((8, 3), lambda i, j: ((i * 3 + j) // 6, (i * 3 + j) % 6), X.reshape(8, 3)),
        ((3, 8), lambda i, j: ((i * 8 + j) % 4, (i * 8 + j) // 4), X.T.reshape(3, 8)),
        ((4,), lambda i: (i, i), X.diagonal()),
    ],
)
def test_loads_at_indices_of_the_axes(shape, index, expected):
    found = mapped(X, lambda x, *i: Load.make(x, index(*i), None), *shape)
    np.testing.assert_array_equal(found, expected)


def test_guarded_loads_are_zero_outside_and_never_read_there():
    def padded(x, i):
        return Load.make(x, (i - 3,), select((i - 3) >= 0, i < 8, const(False, np.dtype(bool))))

    x = np.arange(1.0, 6.0)
    found = mapped(x, padded, 11)
    np.testing.assert_array_equal(found, [0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0])


def test_values_made_of_indices_have_their_dtype():
    found = mapped(
        X, lambda x, i, j: as_value(i * 10 + j, np.dtype(np.int16)), 3, 4, dtype=np.int16
    )
    np.testing.assert_array_equal(found, np.add.outer(np.arange(3) * 10, np.arange(4)))
    assert found.dtype == np.int16


def indexed(x, indices, value, *shape):
    """The array that a map makes from inputs x and indices."""
    sources = buffer("input", 0, *x.shape), buffer("input", 1, *indices.shape, dtype=np.int64)
    out = buffer("output", 0, *shape)
    nest = MapNest(shape, (Store(out, axes(*shape), value(*sources, *axes(*shape))),))
    return run([nest], sources, (out,), [x, indices])[0]


def test_gathers_rows_elements_and_diagonals():
    rows = np.array([3, 0, 3, 1, 2])

    def at(i, *index):
        return as_index(Load.make(i, index, None))

    found = indexed(X, rows, lambda x, r, i, j: Load.make(x, (at(r, i), j), None), 5, 6)
    np.testing.assert_array_equal(found, X[rows])
    found = indexed(X, rows, lambda x, r, i, j: Load.make(x, (at(r, j), 5 - i), None), 6, 5)
    np.testing.assert_array_equal(found, X[rows][:, ::-1].T)
    found = indexed(X, rows, lambda x, r, i: Load.make(x, (at(r, i), i), None), 5)
    np.testing.assert_array_equal(found, X[rows, range(5)])
    found = indexed(X, np.array(2), lambda x, r, i: Load.make(x, (at(r), i), None), 6)
    np.testing.assert_array_equal(found, X[2])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda x, at, i, j, k: (i, at(j), k), lambda x, r: x[:, r]),
        (lambda x, at, i, j, k: (at(i), j, k), lambda x, r: x[r]),
        (lambda x, at, i, j, k: (i, j, at(k)), lambda x, r: x[:, :, r]),
        (lambda x, at, i, j, k: (at(i), j, at(k)), lambda x, r: x[r][:, :, r]),
        (lambda x, at, i, j, k: (j, at(i), k), lambda x, r: x[:, r].transpose(1, 0, 2)),
        (lambda x, at, i, j, k: (2 - i, at(j), k), lambda x, r: x[::-1, r]),
        (lambda x, at, i, j, k: (at(2 - i), 2 - j, 3 - k), lambda x, r: x[r][::-1, ::-1, ::-1]),
        (lambda x, at, i, j, k: (at(i), 2 - j, k), lambda x, r: x[r, ::-1]),
        (lambda x, at, i, j, k: (i, at(j) + 1, k), lambda x, r: x[:, r + 1]),
    ],
)
def test_gathers_along_any_dimension(value, expected):
    x, r = np.arange(36.0).reshape(3, 3, 4), np.array([1, 0, 1])

    def load(source, index, *space):
        def at(axis):
            return clamp(as_index(Load.make(index, (axis,), None)), 0, 2)

        return Load.make(source, value(source, at, *space), None)

    wanted = expected(x, r)
    np.testing.assert_array_equal(indexed(x, r, load, *wanted.shape), wanted)


def test_guarded_gather_from_positions_out_of_range():
    rows = np.array([3, 90, -1, 0])

    def value(x, r, i, j):
        row = as_index(Load.make(r, (i,), None))
        return Load.make(x, (row, j), select(row >= 0, row < 4, const(False, np.dtype(bool))))

    found = indexed(X, rows, value, 4, 6)
    np.testing.assert_array_equal(found, [X[3], 0 * X[0], 0 * X[0], X[0]])


def test_a_gather_of_more_than_there_is_gives_zeros():
    """Its guard cannot hold: six neighbours are not among three elements."""
    rows = np.array([5, 90])

    def value(x, r, i, j):
        row = as_index(Load.make(r, (i,), None))
        return Load.make(x, (row + j,), row < 0)

    found = indexed(np.arange(1.0, 4.0), rows, value, 2, 6)
    np.testing.assert_array_equal(found, np.zeros((2, 6)))


def test_nest_swaps_two_buffers_in_place():
    x, y = buffer("input", 0, 5), buffer("input", 1, 5)
    outs = buffer("output", 0, 5), buffer("output", 1, 5)
    a, b = buffer("scratch", 0, 5), buffer("scratch", 1, 5)
    (i,) = axes(5)

    def copies(*pairs):
        return MapNest((5,), tuple(Store(t, (i,), Load.make(s, (i,), None)) for t, s in pairs))

    nodes = [copies((a, x), (b, y)), copies((a, b), (b, a)), copies((outs[0], a), (outs[1], b))]
    one, two = np.arange(5.0), np.arange(5.0) * 10
    found = run(nodes, (x, y), outs, [one, two], (a, b))
    np.testing.assert_array_equal(found, [two, one])


def test_in_place_updates_read_before_they_write():
    x, out, a, b = (
        buffer("input", 0, 5),
        buffer("output", 0, 5),
        *(buffer("scratch", i, 5) for i in (0, 1)),
    )
    (i,) = axes(5)
    at_a, at_b = Load.make(a, (i,), None), Load.make(b, (i,), None)
    positive = ap("greater", at_a, const(0.0, F64), dtype=bool)
    new_a = ap("where", positive, ap("negative", at_a), at_a)
    nodes = [
        MapNest((5,), tuple(Store(t, (i,), Load.make(x, (i,), None)) for t in (a, b))),
        MapNest((5,), (Store(a, (i,), new_a), Store(b, (i,), ap("add", at_b, at_a)))),
        MapNest((5,), (Store(out, (i,), ap("subtract", at_a, at_b)),)),
    ]
    data = np.array([1.0, -2.0, 0.0, 4.0, -5.0])
    (found,) = run(nodes, (x,), (out,), [data], (a, b))
    np.testing.assert_array_equal(found, np.where(data > 0, -data, data) - 2 * data)


def test_buffers_that_share_memory_are_known_to():
    """The second store's operand lies where the first store goes."""
    x, out = buffer("input", 0, 4), buffer("output", 0, 4)
    a, b = buffer("scratch", 0, 4), buffer("scratch", 1, 4)
    (i,) = axes(4)
    at = Load.make(a, (i,), None)
    nodes = [
        MapNest((4,), (Store(a, (i,), Load.make(x, (i,), None)),)),
        MapNest((4,), (Store(b, (i,), ap("negative", at)), Store(out, (i,), ap("add", at, at)))),
    ]
    (found,) = run(nodes, (x,), (out,), [np.arange(4.0)], offsets={a: 0, b: 0})
    np.testing.assert_array_equal(found, 2 * np.arange(4.0))


@pytest.mark.parametrize("shape", [(70, 90), (3, 40, 50)])
def test_what_is_read_across(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    for order in ((*range(1, len(shape)), 0), (*range(len(shape))[::-1],)):
        f = tracegraph.jit(lambda x, order=order: x.transpose(order) + 1.0, device="host")
        np.testing.assert_array_equal(np.asarray(f(x)), x.transpose(order) + 1)


def reduced(x, space, loop, accumulators, finish=None, out=F64):
    source, target = (
        buffer("input", 0, *x.shape, dtype=x.dtype),
        buffer("output", 0, *space, dtype=out),
    )
    every = axes(*space, *loop)
    made = accumulators(source, *every)
    value = Accumulated.make(0, np.dtype(np.int64) if made[0].arg else made[0].value.dtype)
    value = (
        value if finish is None else finish(*(Accumulated.make(k, F64) for k in range(len(made))))
    )
    nest = ReduceNest(space, loop, made, (Store(target, every[: len(space)], value),))
    return run([nest], (source,), (target,), [x])[0]


def test_folds_over_any_axes():
    x = np.random.default_rng(0).standard_normal((3, 4, 5))

    def total(*order):
        return lambda b, *i: (Accumulator(ADD, Load.make(b, tuple(i[k] for k in order), None)),)

    np.testing.assert_allclose(reduced(x, (3, 4), (5,), total(0, 1, 2)), x.sum(2))
    np.testing.assert_allclose(reduced(x, (4,), (3, 5), total(1, 0, 2)), x.sum((0, 2)))
    np.testing.assert_allclose(reduced(x, (), (3, 4, 5), total(0, 1, 2)), x.sum())
    np.testing.assert_allclose(reduced(x, (5, 1), (3, 4), total(2, 3, 0)), x.sum((0, 1))[:, None])


def test_folds_of_values_that_do_not_vary_over_the_loop():
    found = reduced(
        X[0], (6,), (7, 1), lambda b, i, j, k: (Accumulator(ADD, Load.make(b, (i,), None)),)
    )
    np.testing.assert_array_equal(found, 7 * X[0])
    found = reduced(X, (2,), (3,), lambda b, i, j: (Accumulator(ADD, const(2.0, F64)),))
    np.testing.assert_array_equal(found, [6, 6])


def test_empty_fold_gives_the_identity():
    x = np.zeros((2, 0))
    found = reduced(
        x, (2,), (0,), lambda b, i, j: (Accumulator(MULTIPLY, Load.make(b, (i, j), None)),)
    )
    np.testing.assert_array_equal(found, [1, 1])


def test_several_accumulators_and_an_expression_of_them():
    def both(b, i, j):
        value = Load.make(b, (i, j), None)
        return Accumulator(MAXIMUM, value), Accumulator(ADD, ap("multiply", value, value))

    found = reduced(X, (4,), (6,), both, lambda m, s: ap("divide", s, m))
    np.testing.assert_allclose(found, (X * X).sum(1) / X.max(1))


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("x", [[[7], [3]], [[7, 3], [0, -4]], [[1, 0]]])
def test_gathers_where_folds_say(x, axis, factor):
    def rows(x):
        total = (x * factor).sum(axis=axis, dtype=x.dtype)
        return total, x[np.clip(total, 0, len(x) - 1)]

    x = np.array(x, np.int8)
    for found, expected in zip(tracegraph.jit(rows, device="host")(x), rows(x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), expected)


def test_position_of_the_first_extreme_or_nan():
    x = np.array([[[1.0, 5, 2], [5, 0, 0]], [[0, np.nan, 9], [np.nan, 1, 1]]])

    def position(b, *i):
        return (Accumulator(MAXIMUM, Load.make(b, i, None), arg=True),)

    found = reduced(x, (2,), (2, 3), position, out=np.int64)
    np.testing.assert_array_equal(found, [1, 1])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_sums_of_short_floats_are_rounded_once(dtype):
    x = np.full(4096, 0.1, dtype)
    found = reduced(
        x, (), (4096,), lambda b, i: (Accumulator(ADD, Load.make(b, (i,), None)),), out=dtype
    )
    assert found == x.astype(np.float32).sum().astype(dtype)


def test_sums_of_short_ints_wrap():
    x = np.full(10, 100, np.int8)
    found = reduced(
        x, (), (10,), lambda b, i: (Accumulator(ADD, Load.make(b, (i,), None)),), out=np.int8
    )
    assert found == np.add.reduce(x, dtype=np.int8)


@pytest.mark.parametrize("axis", [0, 1])
def test_scan_along_an_axis(axis):
    source, out = buffer("input", 0, 4, 6), buffer("output", 0, 4, 6)
    value = ap("add", Load.make(source, axes(4, 6), None), const(1.0, F64))
    nest = ScanNest((4, 6), axis, MULTIPLY, Store(out, axes(4, 6), value))
    (found,) = run([nest], (source,), (out,), [X])
    np.testing.assert_array_equal(found, (X + 1).cumprod(axis))


def scattered(indices, updates, combiner, repeats, bound=4):
    """Rows of updates put into (or added to) a 4 x 3 array of ones."""
    values = buffer("input", 0, *updates.shape)
    where = buffer("input", 1, *indices.shape, dtype=np.int64)
    out = buffer("output", 0, 4, 3)
    i, j = axes(*updates.shape)
    row = as_index(Load.make(where, (i,), None))
    guard = select(row >= 0, row < bound, const(False, np.dtype(bool)))
    store = Store(out, (row, j), Load.make(values, (i, j), None), guard)
    fill = MapNest((4, 3), (Store(out, axes(4, 3), const(1.0, F64)),))
    nest = ScatterNest(updates.shape, repeats, combiner, store)
    return run([fill, nest], (values, where), (out,), [updates, indices])[0]


def test_scatter_applies_repeats_in_order_and_drops_what_is_outside():
    indices = np.array([1, 3, 1, 7, -2, 3])
    updates = np.arange(18.0).reshape(6, 3)
    kept = [0, 1, 2, 5]
    expected = np.ones((4, 3))
    for row in kept:
        expected[indices[row]] = updates[row]
    np.testing.assert_array_equal(scattered(indices, updates, None, 1), expected)
    expected = np.ones((4, 3))
    np.add.at(expected, indices[kept], updates[kept])
    np.testing.assert_array_equal(scattered(indices, updates, ADD, 1), expected)


def test_scatter_without_repeats_combines_all_at_once():
    indices = np.array([2, 0])
    updates = np.arange(1.0, 7.0).reshape(2, 3)
    expected = np.ones((4, 3))
    expected[indices] *= updates
    np.testing.assert_array_equal(scattered(indices, updates, MULTIPLY, 0), expected)


def test_scatter_of_a_repeated_axis_that_the_index_ignores():
    """Every row goes to one place: the last one stays."""
    source, out = buffer("input", 0, 4, 6), buffer("output", 0, 6)
    i, j = axes(4, 6)
    store = Store(out, (j,), Load.make(source, (i, j), None))
    (found,) = run([ScatterNest((4, 6), 1, None, store)], (source,), (out,), [X])
    np.testing.assert_array_equal(found, X[-1])
    fill = MapNest((6,), (Store(out, axes(6), const(0.0, F64)),))
    (found,) = run([fill, ScatterNest((4, 6), 1, ADD, store)], (source,), (out,), [X])
    np.testing.assert_array_equal(found, X.sum(0))


def test_products_of_strided_batches_and_copies():
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    source, out = buffer("input", 0, 2, 3, 4), buffer("output", 0, 2, 3, 3)
    copy = buffer("scratch", 0, 24)
    left = MatrixOperand(source, 0, 12, 4, 1)
    right = MatrixOperand(copy, 0, 12, 1, 4)
    product = MatrixProduct(2, 3, 3, 4, left, right, MatrixOperand(out, 0, 9, 3, 1))
    (found,) = run(
        [MemcpyNode(copy, source), LibraryNode(product)], (source,), (out,), [x], (copy,)
    )
    np.testing.assert_array_equal(found, x @ x.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_products_of_short_floats_are_rounded_once(dtype):
    x = np.linspace(0.0, 1.0, 64).reshape(8, 8).astype(dtype)
    source, out = buffer("input", 0, 8, 8, dtype=dtype), buffer("output", 0, 8, 8, dtype=dtype)
    operand = MatrixOperand(source, 0, 64, 8, 1)
    node = MatrixProduct(1, 8, 8, 8, operand, operand, MatrixOperand(out, 0, 64, 8, 1))
    (found,) = run([LibraryNode(node)], (source,), (out,), [x])
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(found, (wide @ wide).astype(dtype))
