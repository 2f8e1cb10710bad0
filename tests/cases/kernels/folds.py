"""Cases of ReduceNest, ScanNest and ScatterNest."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    MapNest,
    ReduceNest,
    ScanNest,
    ScatterNest,
    SetCondition,
)
from tests.cases.kernels.by_hand import axes, buffer, call, load, node, store
from tests.cases.kernels.case import Case, case, kernel_case, values
from tracegraph.ir.combiners import ADD, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import Expr, both, const
from tracegraph.ir.scalar_values import Accumulated, as_index

TOLERANCE = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-14, "complex128": 1e-14}


def accumulated(number: int, dtype: Any) -> Expr:
    """The result of an accumulator."""
    return Accumulated.make(number, np.dtype(dtype))


def reduction(
    x: Buffer, out: Buffer, kept: tuple[int, ...], combiner: Combiner, arg: bool = False
) -> ReduceNest:
    """A reduction of a buffer over the axes that are not kept."""
    shape = x.type.shape
    loop = tuple(a for a in range(len(shape)) if a not in kept)
    numbered = axes(*(shape[a] for a in (*kept, *loop)))
    place = dict(zip((*kept, *loop), numbered, strict=True))
    element = load(x, *(place[a] for a in range(len(shape))))
    result = accumulated(0, out.type.dtype)
    return ReduceNest(
        tuple(shape[a] for a in kept),
        tuple(shape[a] for a in loop),
        (Accumulator(combiner, element, arg),),
        (store(out, numbered[: len(kept)], result),),
    )


def _reductions() -> None:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...], str]] = [
        ((7, 300), (0,), "float32"),  # rows
        ((300, 7), (1,), "float32"),  # columns
        ((10, 9000), (0,), "float64"),  # rows, split
        ((3000, 40), (1,), "float64"),  # columns, split
        ((50_000,), (), "float32"),  # to one number, split
        ((300_000,), (), "float32"),  # and in chains long enough to be cut
        ((5, 17, 6), (0, 2), "complex128"),  # the middle
        ((5, 6, 7), (1,), "float16"),  # the outer ones
        ((9, 70, 3), (0, 2), "float32"),  # the middle, with few columns
        ((12, 5000, 2), (0, 2), "float64"),
        ((16, 33, 3), (0, 2), "float16"),
        ((3, 3), (0, 1), "float32"),  # nothing
        ((4, 0), (0,), "float32"),  # over nothing
        ((0, 4), (0,), "float32"),  # of nothing
    ]
    for shape, kept, dtype in shapes:
        x, out = buffer(dtype, *shape), buffer(dtype, *(shape[a] for a in kept))
        given = values(dtype, *shape)
        over = tuple(a for a in range(len(shape)) if a not in kept)
        wide = given.astype(np.complex128 if given.dtype.kind == "c" else np.float64)
        name = f"sum_{dtype}_{'x'.join(map(str, shape))}_keeps_{'_'.join(map(str, kept)) or 'none'}"
        nest = reduction(x, out, kept, ADD)
        kernel_case(name, (nest,), {x: given}, {out: wide.sum(over)}, TOLERANCE[dtype])


def _exact_reductions() -> None:
    for combiner, dtype in [
        (ADD, "int32"),
        (MULTIPLY, "uint8"),
        (MINIMUM, "int64"),
        (MAXIMUM, "float32"),
        (MINIMUM, "bfloat16"),
        (MAXIMUM, "complex64"),
        (LOGICAL_AND, "bool"),
        (LOGICAL_OR, "bool"),
    ]:
        x, out = buffer(dtype, 9, 4500), buffer(dtype, 9)
        given = values(dtype, 9, 4500)
        given[3, 17] = np.nan if given.dtype.kind in "fcV" else given[3, 17]
        if dtype == "bool":
            given[:4] = combiner is LOGICAL_AND
        with np.errstate(all="ignore"):
            expected = combiner.ufunc.reduce(given, axis=1, dtype=given.dtype)
        nest = reduction(x, out, (0,), combiner)
        kernel_case(f"{combiner.name}_{dtype}", (nest,), {x: given}, {out: expected})


def _arg_reductions() -> None:
    for shape, kept in [
        ((6, 50), (0,)),
        ((50, 6), (1,)),
        ((2, 9000), (0,)),
        ((30, 41), ()),
        ((9, 40, 3), (0, 2)),
    ]:
        x, out = buffer("float32", *shape), buffer("int64", *(shape[a] for a in kept))
        given = np.round(values("float32", *shape) * 2)  # many ties
        flat = given.reshape(-1)
        flat[37 :: flat.size // 2] = np.nan
        over = tuple(a for a in range(len(shape)) if a not in kept)
        axis = over[0] if kept else None
        for combiner, ufunc in [(MINIMUM, np.argmin), (MAXIMUM, np.argmax)]:
            name = f"arg_{combiner.name}_{'x'.join(map(str, shape))}"
            nest = reduction(x, out, kept, combiner, arg=True)
            kernel_case(name, (nest,), {x: given}, {out: np.asarray(ufunc(given, axis))})


@case
def several_accumulators_at_once() -> Case:
    x, n = buffer("float32", 4, 5000), buffer("int16", 4, 5000)
    i, j = axes(4, 5000)
    outs = buffer("float32", 4), buffer("int64", 4), buffer("int16", 4), buffer("bool", 4)
    a, b = load(x, i, j), load(n, i, j)
    accumulators = (
        Accumulator(MAXIMUM, a),
        Accumulator(MINIMUM, a, arg=True),
        Accumulator(ADD, b),
        Accumulator(LOGICAL_OR, call("less", b, const(-32760, b.dtype), dtype=bool)),
    )
    first = call("multiply", accumulated(0, "float32"), const(2.0, np.dtype(np.float32)))
    results = (first, accumulated(1, "int64"), accumulated(2, "int16"), accumulated(3, "bool"))
    stores = tuple(store(out, (i,), result) for out, result in zip(outs, results, strict=True))
    given = {x: values("float32", 4, 5000), n: values("int16", 4, 5000)}
    expected = (
        given[x].max(1) * 2,
        given[x].argmin(1),
        given[n].sum(1, dtype=np.int16),
        (given[n] < -32760).any(1),
    )
    nest = ReduceNest((4,), (5000,), accumulators, stores)
    return Case(node("several", nest), given, dict(zip(outs, expected, strict=True)))


@case
def condition_set_where_a_split_reduction_ends() -> Case:
    x, out, limit = buffer("float32", 20_000), buffer("float32"), buffer("float32")
    (i,) = axes(20_000)
    largest = accumulated(0, "float32")
    nest = ReduceNest(
        (),
        (20_000,),
        (Accumulator(MAXIMUM, call("absolute", load(x, i))),),
        (store(out, (), largest),),
        (SetCondition(2, call("greater", largest, load(limit), dtype=bool)),),
    )
    given = values("float32", 20_000)
    expected = np.abs(given).max()
    return Case(
        node("residual", nest), {x: given, limit: expected * 0.9}, {out: expected}, 0.0, {2: 1}
    )


@case
def nests_of_every_kind_in_one_kernel() -> Case:
    x, total, most = buffer("int32", 12_345), buffer("int32"), buffer("int32")
    negated, running = buffer("int32", 12_345), buffer("int32", 12_345)
    (i,) = axes(12_345)
    nests = (
        reduction(x, total, (), ADD),
        MapNest((12_345,), (store(negated, (i,), call("negative", load(x, i))),)),
        reduction(x, most, (), MAXIMUM),
        ScanNest((12_345,), 0, ADD, store(running, (i,), load(x, i))),
    )
    given = values("int32", 12_345)
    expected = {
        total: given.sum(dtype=np.int32),
        most: given.max(),
        negated: -given,
        running: given.cumsum(dtype=np.int32),
    }
    return Case(node("all_kinds", *nests), {x: given}, expected)


def _scans() -> None:
    for shape, axis, dtype, combiner, tolerance in [
        ((6, 40), 1, "float32", ADD, 0.0),  # alone: in NumPy's order
        ((40, 6), 0, "float64", MULTIPLY, 0.0),
        ((3, 5, 4), 1, "bfloat16", ADD, 0.0),
        ((2, 2000), 1, "float16", ADD, 0.0),
        ((5, 300), 1, "float32", ADD, 1e-5),  # a block a line
        ((2, 2500), 1, "float64", ADD, 1e-13),
        ((1024, 3), 0, "int64", ADD, 0.0),
        ((1025,), 0, "complex128", ADD, 1e-13),
        ((5000,), 0, "uint8", MULTIPLY, 0.0),
        ((40_001,), 0, "float64", ADD, 1e-13),  # several blocks a line
        ((3, 20_000), 1, "int32", ADD, 0.0),
        ((17_000, 2), 0, "float32", MAXIMUM, 0.0),
        ((9000,), 0, "complex64", ADD, 1e-6),
        ((0, 3), 0, "float32", ADD, 0.0),
    ]:
        x, out = buffer(dtype, *shape), buffer(dtype, *shape)
        index = axes(*shape)
        given = values(dtype, *shape)
        expected = combiner.ufunc.accumulate(given, axis=axis, dtype=given.dtype)
        name = f"scan_{combiner.name}_{dtype}_{'x'.join(map(str, shape))}_along_{axis}"
        nest = ScanNest(shape, axis, combiner, store(out, index, load(x, *index)))
        kernel_case(name, (nest,), {x: given}, {out: expected}, tolerance)


@case
def scan_in_place_of_a_computed_value() -> Case:
    x = buffer("int32", 3, 2100)
    i, j = axes(3, 2100)
    value = call("add", load(x, i, j), const(1, np.dtype(np.int32)))
    nest = ScanNest((3, 2100), 1, ADD, store(x, (i, j), value))
    given = values("int32", 3, 2100)
    return Case(node("scan", nest), {x: given}, {x: (given + 1).cumsum(1, dtype=np.int32)})


def _scatters() -> None:
    for combiner, dtype, count in [
        (None, "float32", 90),  # walked by several owners
        (ADD, "float32", 90),
        (ADD, "float16", 90),
        (MULTIPLY, "int8", 90),
        (ADD, "complex64", 90),
        (None, "float64", 20),  # by a single one
        (MINIMUM, "float64", 20),
        (MAXIMUM, "bfloat16", 20),
    ]:
        x, at = buffer(dtype, 5, 3), buffer("int32", count)
        updates = buffer(dtype, count, 3)
        i, j = axes(count, 3)
        row = as_index(load(at, i))
        inside = both(row >= 0, row < 5)
        place = store(x, (row, j), load(updates, i, j), inside)
        rows = np.random.default_rng(3).integers(-1, 6, count, np.int32)
        given = {x: values(dtype, 5, 3), at: rows, updates: values(dtype, count, 3, seed=2)}
        expected, hit = given[x].copy(), (rows >= 0) & (rows < 5)
        if combiner is None:
            expected[rows[hit]] = given[updates][hit]
        else:
            combiner.ufunc.at(expected, rows[hit], given[updates][hit])
        name = f"scatter_{combiner.name if combiner else 'set'}_{dtype}"
        nest = ScatterNest((count, 3), 1, combiner, place)
        kernel_case(name, (nest,), given, {x: expected})


ATOMIC_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)


def _atomic_scatters() -> None:
    """Rows that collide, in any order; some are out of range."""
    combined = [(c, d) for c in (ADD, MULTIPLY, MINIMUM, MAXIMUM) for d in ATOMIC_DTYPES]
    for combiner, dtype in [*combined, (ADD, "complex64"), (ADD, "complex128")]:
        x, at = buffer(dtype, 50, 3), buffer("int16", 200)
        updates = buffer(dtype, 200, 3)
        i, j = axes(200, 3)
        row = as_index(load(at, i))
        inside = both(row >= 0, row < 50)
        place = store(x, (row, j), load(updates, i, j), inside)
        rows = np.random.default_rng(3).integers(-5, 55, 200, np.int16)
        given = {x: values(dtype, 50, 3), at: rows, updates: values(dtype, 200, 3, seed=2)}
        expected, hit = given[x].copy(), (rows >= 0) & (rows < 50)
        combiner.ufunc.at(expected, rows[hit], given[updates][hit])
        nest = ScatterNest((200, 3), 1, combiner, place, any_order=True)
        rounded = given[x].dtype.kind in "fcV" and combiner in (ADD, MULTIPLY)
        tolerance = {"float16": 4e-3, "bfloat16": 3e-2}.get(dtype, 1e-6) if rounded else 0.0
        name = f"atomic_scatter_{combiner.name}_{dtype}"
        kernel_case(name, (nest,), given, {x: expected}, tolerance)


def _folded_scatters() -> None:
    """Many updates of few elements, in shared memory first; some are out of range."""
    count = 300_000
    rows = np.random.default_rng(9).integers(-1, 6, count, np.int8)
    hit = (rows >= 0) & (rows < 5)
    sums = ("int32", "uint64", "float32", "float64", "complex64", "complex128")
    others = ("int8", "uint16", "int32", "int64", "float32", "float64")
    cases = [(ADD, dtype) for dtype in (*sums, "int8")]
    cases += [(combiner, d) for combiner in (MINIMUM, MAXIMUM, MULTIPLY) for d in others]
    for combiner, dtype in cases:
        x, at, updates = buffer(dtype, 5), buffer("int8", count), buffer(dtype, count)
        (i,) = axes(count)
        row = as_index(load(at, i))
        place = store(x, (row,), load(updates, i), both(row >= 0, row < 5))
        numbers = values(dtype, count, seed=2)
        if combiner is MULTIPLY:
            numbers = np.where(np.arange(count) % 30_000 == 0, numbers, numbers.dtype.type(1))
        given = {x: values(dtype, 5), at: rows, updates: numbers}
        expected = given[x].copy()
        combiner.ufunc.at(expected, rows[hit], given[updates][hit])
        nest = ScatterNest((count,), 1, combiner, place, any_order=True)
        tolerance = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-12, "complex128": 1e-12}
        rounded = tolerance.get(dtype, 0.0) if combiner in (ADD, MULTIPLY) else 0.0
        kernel_case(f"folded_{combiner.name}_{dtype}", (nest,), given, {x: expected}, rounded)


@case
def folded_sums_keep_the_signs_of_zeros() -> Case:
    x, at, updates = buffer("float64", 3), buffer("int8", 300_000), buffer("float64", 300_000)
    (i,) = axes(300_000)
    place = store(x, (as_index(load(at, i)),), load(updates, i))
    nest = ScatterNest((300_000,), 1, ADD, place, any_order=True)
    rows = np.arange(300_000) % 2
    zeros = np.where(rows == 0, -0.0, 0.0)
    given = {x: np.array([-0.0, -0.0, -0.0]), at: rows, updates: zeros}
    return Case(node("signs", nest), given, {x: np.array([-0.0, 0.0, -0.0])})


@case
def atomic_updates_beside_a_map() -> Case:
    x, y, at = buffer("int8", 7), buffer("int8", 9), buffer("int64", 30)
    (i,) = axes(30)
    (j,) = axes(9)
    one = const(1, np.dtype(np.int8))
    count = ScatterNest((30,), 1, ADD, store(x, (as_index(load(at, i)),), one), any_order=True)
    nests = (MapNest((9,), (store(y, (j,), one),)), count)
    rows = np.random.default_rng(6).integers(0, 7, 30)
    expected = np.bincount(rows, minlength=7).astype(np.int8)
    given = {x: np.zeros(7), at: rows}
    return Case(node("beside", *nests), given, {x: expected, y: np.ones(9)})


@case
def extremes_of_zeros_and_nan_do_not_depend_on_the_order() -> Case:
    x, at, updates = buffer("float32", 4), buffer("int32", 8), buffer("float32", 8)
    (i,) = axes(8)
    place = store(x, (as_index(load(at, i)),), load(updates, i))
    nest = ScatterNest((8,), 1, MINIMUM, place, any_order=True)
    given = {
        x: np.array([0.0, -0.0, 5.0, np.nan]),
        at: np.array([0, 0, 1, 1, 2, 2, 3, 3]),
        updates: np.array([-0.0, 0.0, 0.0, -0.0, np.nan, 1.0, 2.0, -np.inf]),
    }
    expected = np.array([-0.0, -0.0, np.nan, np.nan], np.float32)
    return Case(node("zeros", nest), given, {x: expected})


@case
def products_of_one_element_are_made_in_order() -> Case:
    x, updates = buffer("float64", 1), buffer("float64", 600)
    (i,) = axes(600)
    nest = ScatterNest((600,), 1, MULTIPLY, store(x, (const(0),), load(updates, i)), any_order=True)
    factors = np.random.default_rng(8).uniform(0.9, 1.1, 600)
    product = np.multiply.reduce(factors, keepdims=True)
    return Case(node("product", nest), {x: np.ones(1), updates: factors}, {x: product}, 1e-12)


@case
def histogram_by_many_owners() -> Case:
    counts, x = buffer("float32", 50), buffer("uint8", 4000)
    (i,) = axes(4000)
    target = as_index(load(x, i))
    one = const(1.0, np.dtype(np.float32))
    nest = ScatterNest((4000,), 1, ADD, store(counts, (target,), one, target < 50))
    given = values("uint8", 4000)
    expected = np.bincount(given, minlength=256)[:50].astype(np.float32)
    return Case(node("histogram", nest), {x: given, counts: np.zeros(50)}, {counts: expected})


@case
def scatter_over_two_repeated_axes_sets_the_last() -> Case:
    x, at = buffer("float32", 3, 4), buffer("int64", 40, 30)
    updates = buffer("float32", 40, 30, 4)
    i, j, k = axes(40, 30, 4)
    place = (as_index(load(at, i, j)), k)
    nest = ScatterNest((40, 30, 4), 2, None, store(x, place, load(updates, i, j, k)))
    rows = np.random.default_rng(5).integers(0, 3, (40, 30))
    given = {x: np.zeros((3, 4)), at: rows, updates: values("float32", 40, 30, 4)}
    expected = np.zeros((3, 4), np.float32)
    expected[rows] = given[updates]
    return Case(node("last", nest), given, {x: expected})


@case
def scatter_into_a_slice_without_repeats() -> Case:
    x, updates = buffer("int64", 8, 9), buffer("int64", 3, 4)
    i, j = axes(3, 4)
    target = (i * 2 + 1, -j * 2 + 8)
    nest = ScatterNest((3, 4), 0, ADD, store(x, target, load(updates, i, j)))
    given = {x: values("int64", 8, 9), updates: values("int64", 3, 4, seed=1)}
    expected = given[x].copy()
    expected[1:7:2, 8:0:-2] += given[updates]
    return Case(node("slice", nest), given, {x: expected})


@case
def scatter_of_a_single_point() -> Case:
    x, at = buffer("float32", 6), buffer("int64")
    value = const(2.5, np.dtype(np.float32))
    nest = ScatterNest((), 0, None, store(x, (as_index(load(at)),), value))
    before = values("float32", 6)
    expected = before.copy()
    expected[4] = 2.5
    return Case(node("point", nest), {x: before, at: 4}, {x: expected})


_reductions()
_exact_reductions()
_arg_reductions()
_scans()
_scatters()
_atomic_scatters()
_folded_scatters()
