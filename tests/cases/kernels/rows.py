"""Cases of RowNest."""

from __future__ import annotations

from itertools import product

import numpy as np

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Accumulator, MapNest, Pass, RowNest, SetCondition
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, store
from tests.cases.kernels.case import CASES, Case, kernel_case, values
from tests.cases.kernels.folds import accumulated
from tracegraph.ir.combiners import ADD, MAXIMUM, MINIMUM
from tracegraph.ir.scalar import Expr, const

TOLERANCE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-14}


def _row(x: Buffer, axis: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Expr, ...]]:
    """The space and the loop of rows along an axis, and the indices of an element."""
    shape = x.type.shape
    space, loop = tuple(n for a, n in enumerate(shape) if a != axis), (shape[axis],)
    *outer, step = axes(*space, *loop)
    index = [*outer]
    index.insert(axis, step)
    return space, loop, tuple(index)


def softmax(x: Buffer, out: Buffer, axis: int) -> RowNest:
    """Three passes: the largest element; the sum; the results."""
    space, loop, index = _row(x, axis)
    dtype = x.type.dtype
    shifted = call("exp", call("subtract", load(x, *index), accumulated(0, dtype)))
    result = call("divide", shifted, accumulated(1, dtype))
    passes = (
        Pass((Accumulator(MAXIMUM, load(x, *index)),), ()),
        Pass((Accumulator(ADD, shifted),), ()),
        Pass((), (store(out, index, result),)),
    )
    return RowNest(space, loop, passes, ())


def _softmaxes() -> None:
    for shape, axis, dtype, in_place in [
        ((5, 4096), 1, "float32", False),  # kept in registers, a block a row
        ((37, 70), 1, "float64", False),  # several rows a block
        ((3, 1000), 1, "float16", False),
        ((2, 5, 33), 2, "bfloat16", True),
        ((2, 9000), 1, "float64", True),  # too long to be kept
        ((3, 20_000), 1, "float32", False),  # kept by two blocks
        ((2, 100_000), 1, "float16", False),  # by four, in groups
        ((1, 270_001), 1, "float32", True),  # too long for eight
        ((500, 40), 0, "float32", False),  # columns
        ((3, 7, 50), 1, "float32", True),  # the middle
        ((200, 3), 1, "float32", False),
        ((4, 1), 1, "float32", False),
        ((0, 6), 1, "float32", False),
    ]:
        x = buffer(dtype, *shape)
        out = x if in_place else buffer(dtype, *shape)
        given = values(dtype, *shape)
        wide = given.astype(np.float64)
        powers = np.exp(wide - wide.max(axis, keepdims=True))
        expected = powers / powers.sum(axis, keepdims=True)
        name = f"softmax_{dtype}_{'x'.join(map(str, shape))}_along_{axis}"
        kernel_case(name, (softmax(x, out, axis),), {x: given}, {out: expected}, TOLERANCE[dtype])


def _normalisations() -> None:
    for rows, columns in [(6, 300), (3, 30_000)]:
        x, weight, bias = (buffer("float64", *s) for s in ((rows, columns), (columns,), (columns,)))
        out, mean, variance = (buffer("float64", *s) for s in ((rows, columns), (rows,), (rows,)))
        i, j = axes(rows, columns)
        double = np.dtype(np.float64)
        size = const(columns, double)
        average = call("divide", accumulated(0, double), size)
        centred = call("subtract", load(x, i, j), average)
        spread = call("divide", accumulated(1, double), size)
        scale = call("sqrt", call("add", spread, const(1e-5, double)))
        scaled = call("multiply", call("divide", centred, scale), load(weight, j))
        passes = (
            Pass((Accumulator(ADD, load(x, i, j)),), ()),
            Pass((Accumulator(ADD, call("multiply", centred, centred)),), ()),
            Pass((), (store(out, (i, j), call("add", scaled, load(bias, j))),)),
        )
        nest = RowNest(
            (rows,), (columns,), passes, (store(mean, (i,), average), store(variance, (i,), spread))
        )
        given = {
            x: values("float64", rows, columns),
            weight: values("float64", columns, seed=1),
            bias: values("float64", columns, seed=2),
        }
        mu, var = given[x].mean(1), given[x].var(1)
        normal = (given[x] - mu[:, None]) / np.sqrt(var + 1e-5)[:, None]
        expected = {out: normal * given[weight] + given[bias], mean: mu, variance: var}
        kernel_case(f"layer_norm_{rows}x{columns}", (nest,), given, expected, 1e-13)


def _updates() -> None:
    """One pass: an update in place, and a reduction of what it gives."""
    for shape, space_rank in [((9, 40), 1), ((3, 5000), 1), ((50_000,), 0)]:
        x, step = buffer("float32", *shape), buffer("float32", *shape)
        out = buffer("float32", *shape[:space_rank])
        index = axes(*shape)
        moved = call("subtract", load(x, *index), load(step, *index))
        only = Pass((Accumulator(MAXIMUM, call("absolute", moved)),), (store(x, index, moved),))
        most = accumulated(0, "float32")
        nest = RowNest(
            shape[:space_rank],
            shape[space_rank:],
            (only,),
            (store(out, index[:space_rank], most),),
        )
        given = {x: values("float32", *shape), step: values("float32", *shape, seed=1)}
        after = given[x] - given[step]
        expected = {x: after, out: np.abs(after).max(tuple(range(space_rank, len(shape))))}
        kernel_case(f"update_and_largest_{'x'.join(map(str, shape))}", (nest,), given, expected)


def _rereads() -> None:
    """A pass reads what an earlier one stored, not what was there before."""
    for dtype, columns in product(("int16", "int32"), (50, 1000, 40_000)):
        x, doubled = buffer(dtype, 4, columns), buffer(dtype, 4, columns)
        i, j = axes(4, columns)
        number = x.type.dtype
        twice = call("add", load(x, i, j), load(x, i, j))
        passes = (
            Pass((Accumulator(ADD, load(x, i, j)),), (store(x, (i, j), twice),)),
            Pass(
                (Accumulator(MINIMUM, load(x, i, j)),),
                (store(doubled, (i, j), call("subtract", load(x, i, j), accumulated(0, number))),),
            ),
        )
        least = buffer(dtype, 4)
        nest = RowNest((4,), (columns,), passes, (store(least, (i,), accumulated(1, number)),))
        given = values(dtype, 4, columns)
        with np.errstate(over="ignore"):
            after = given + given
            expected = {
                x: after,
                least: after.min(1),
                doubled: after - given.sum(1, dtype=number)[:, None],
            }
        kernel_case(f"reread_{dtype}_{columns}", (nest,), {x: given}, expected)


def _positions_and_conditions_after_two_passes() -> None:
    for condition, size in ((7, 600), (8, 30_000)):  # in a block, and in a cluster
        x, out, at = buffer("float32", size), buffer("float32", size), buffer("int64")
        (j,) = axes(size)
        most, where = accumulated(0, "float32"), accumulated(1, "int64")
        centred = call("subtract", load(x, j), most)
        passes = (
            Pass(
                (Accumulator(MAXIMUM, load(x, j)), Accumulator(MAXIMUM, load(x, j), arg=True)), ()
            ),
            Pass((Accumulator(MINIMUM, centred),), (store(out, (j,), centred),)),
        )
        less = call("less", accumulated(2, "float32"), most, dtype=bool)
        signal = SetCondition(condition, less)
        nest = RowNest((), (size,), passes, (store(at, (), where),), (signal,))
        given = values("float32", size)
        expected = {out: given - given.max(), at: np.array(given.argmax())}
        both = node(f"position_and_condition_{size}", nest)
        CASES[both.kernel.name] = Case(both, {x: given}, expected, 0.0, {condition: 1})


def _siblings() -> None:
    """Rows in clusters of two sizes, and others without, in one kernel."""
    given: dict[Buffer, np.ndarray] = {}
    expected: dict[Buffer, np.ndarray] = {}
    nests: list[MapNest | RowNest] = []
    for rows, columns in ((5, 300), (3, 20_000), (1, 90_000)):
        x, out = buffer("float64", rows, columns), buffer("float64", rows, columns)
        given[x] = values("float64", rows, columns)
        powers = np.exp(given[x] - given[x].max(1, keepdims=True))
        expected[out] = powers / powers.sum(1, keepdims=True)
        nests.append(softmax(x, out, 1))
    x, out = buffer("float64", 70), buffer("float64", 70)
    (i,) = axes(70)
    given[x] = values("float64", 70)
    expected[out] = given[x] + given[x]
    nests.append(MapNest((70,), (store(out, (i,), call("add", load(x, i), load(x, i))),)))
    kernel_case("siblings_of_rows", tuple(nests), given, expected, TOLERANCE["float64"])


_softmaxes()
_normalisations()
_updates()
_rereads()
_positions_and_conditions_after_two_passes()
_siblings()
