"""Schedules of nests: the order of loops, where they are split, and how folds are carried out.

A schedule is data: `schedule_of(nest)` decides it, the writers of nests follow it, and `explain`
prints it. Nothing in it depends on the processor or on a number of threads, and neither do results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Literal

from lowering.native.nests.operations import direct_instruction, fold_dtype
from lowering.native.nests.ranges import break_points
from lowering.plan.nests.analysis import nest_roots
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    MapNest,
    Nest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
    Store,
)
from lowering.plan.nests.strides import offset_in
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Expr, Sum
from tracegraph.ir.scalar_values import Load

UNROLLED_STEPS = 16
"""Steps of a fold that are written out, so that the loop over points can be vectorised."""

COLUMNS = 512
"""Points whose accumulators are held at once while a fold reads along its points."""

FEWEST_COLUMNS = 8
"""Points along the innermost axis for which that is done."""

LINE = 64
"""Bytes of a line of the cache: a tile of a transposition has that along both axes. Rows of more
tiles would often be at the same places of the cache, which holds 8 to 16 lines for each place."""

FEWEST_TILED = 64
"""The least extent of both axes of a nest with tiles."""

TILES = 8
"""Tiles that are read one beside the other: memory is read ahead along a row."""

FoldForm = Literal["unrolled", "columns", "rows"]

LinearForm = Mapping[int, int]
"""The factors of axes, by number, in an index."""


@dataclass(frozen=True, slots=True)
class NestLoop:
    """A loop over one axis, or over several that are one in memory: `axes` has the last one last.

    `cuts` are positions where it is split. Steps of an `independent` one may run in any order. With
    `tile`, it runs over blocks of that many steps, and then over the steps of each block.
    """

    axes: tuple[int, ...]
    extent: int
    independent: bool
    cuts: tuple[int, ...] = ()
    tile: int = 0

    @property
    def axis(self) -> int:
        """The axis that it counts; the others stay 0."""
        return self.axes[-1]

    def __str__(self) -> str:
        name = "·".join(f"i{axis}" for axis in self.axes)
        cuts = f" cut at {', '.join(map(str, self.cuts))}" if self.cuts else ""
        return f"{name} < {self.extent}{f' by {self.tile}' if self.tile else ''}{cuts}"


@dataclass(frozen=True, slots=True)
class Chunks:
    """Parts of a nest that threads may carry out: `count` of a size; the last may be smaller.

    A chunk is a number of steps of a loop over points, `loop` by its number; or, with None, of
    blocks of a fold.
    """

    loop: int | None
    size: int
    count: int
    time: float
    """An estimate of the nanoseconds that all of them take."""


@dataclass(frozen=True, slots=True)
class NestSchedule:
    """How a nest is carried out: loops over its points, outermost first, and over steps of a fold.

    `fold` says how steps are folded: written out at each point; with the accumulators of many
    points at once; or point by point, in blocks of lanes.
    """

    points: tuple[NestLoop, ...]
    steps: tuple[NestLoop, ...] = ()
    fold: FoldForm | None = None
    chunks: Chunks | None = None

    def __str__(self) -> str:
        loops = "; ".join(map(str, self.points)) or "one point"
        if self.fold is not None:
            steps = "; ".join(map(str, self.steps)) or "one step"
            loops = f"{loops}: fold over {steps}, {self.fold}"
        return loops if self.chunks is None else f"{loops}; {self._chunks_text(self.chunks)}"

    def _chunks_text(self, chunks: Chunks) -> str:
        of = "blocks" if chunks.loop is None else f"i{self.points[chunks.loop].axis}"
        return f"threads: {chunks.count} chunks of {chunks.size} {of}"


def schedule_of(nest: Nest) -> NestSchedule:
    """The schedule of a nest."""
    roots = nest_roots(nest)
    match nest:
        case MapNest(space=space):
            return NestSchedule(_cut(_independent_loops(_axes(space), _Accesses(nest)), roots))
        case ScatterNest(space=space, repeats=repeats):
            ordered = [NestLoop((n,), extent, False) for n, extent in _axes(space) if n < repeats]
            free = [(n, extent) for n, extent in _axes(space) if n >= repeats]
            loops = (*ordered, *_independent_loops(free, _Accesses(nest)))
            return NestSchedule(loops)
        case ScanNest(space=space, axis=axis):
            others = [NestLoop((n,), extent, False) for n, extent in _axes(space) if n != axis]
            along = (NestLoop((axis,), space[axis], False),)
            (stored,) = _Accesses(nest).stores
            if others and others[-1].extent >= FEWEST_COLUMNS and stored.get(axis, 0) != 1:
                return NestSchedule(tuple(others), along, "columns")
            return NestSchedule(tuple(others), along, "rows")
        case ReduceNest(space=space, loop=loop) | RowNest(space=space, loop=loop):
            accesses = _Accesses(nest)
            steps = _collapsed(_axes(loop, len(space)), accesses)
            if prod(loop) <= UNROLLED_STEPS:
                written = tuple(NestLoop((n,), e, False) for n, e in _axes(loop, len(space)))
                return NestSchedule(
                    _cut(_collapsed(_axes(space), accesses), roots), written, "unrolled"
                )
            points = tuple(NestLoop((n,), extent, False) for n, extent in _axes(space))
            if _is_along_points(nest, accesses, steps):
                return NestSchedule(points, steps, "columns")
            return NestSchedule(points, steps, "rows")
    raise TypeError(f"a nest of class {type(nest).__name__} has no native schedule")


def is_folded_in_lanes(accumulator: Accumulator) -> bool:
    """Whether a fold is a tree over lanes: of sums and products of floats, which round."""
    dtype = accumulator.value.dtype
    wide = dtype.kind in "fc" or (dtype.itemsize == 2 and dtype.kind == "V")
    if accumulator.arg or not wide:
        return False
    if accumulator.combiner.name not in ("add", "multiply"):
        return False
    return dtype.kind != "c" or direct_instruction(accumulator.combiner, dtype) is not None


def is_searched(accumulator: Accumulator) -> bool:
    """Whether the position of an extreme is searched in blocks: of numbers that are in order."""
    dtype = fold_dtype(accumulator.value.dtype)
    return accumulator.arg and dtype.kind in "biuf"


def _axes(extents: Sequence[int], first: int = 0) -> list[tuple[int, int]]:
    """The axes by number, and their extents, but for those of one point."""
    return [(first + n, extent) for n, extent in enumerate(extents) if extent != 1]


class _Accesses:
    """The linear forms of indices of a nest: where it reads and writes, and all others."""

    def __init__(self, nest: Nest) -> None:
        self.loads: list[LinearForm] = []
        self.all: list[LinearForm] = []
        self._seen: set[Expr] = set()
        stores: Iterable[Store]
        match nest:
            case ScanNest(store=store) | ScatterNest(store=store):
                stores = (store,)
            case RowNest(passes=passes, stores=last):
                stores = (*[store for each in passes for store in each.stores], *last)
            case MapNest(stores=found) | ReduceNest(stores=found):
                stores = found
            case _:
                stores = ()
        indices = {index for store in stores for index in store.indices}
        roots = [root for root in nest_roots(nest) if root not in indices]
        self.itemsize = max([s.buffer.type.dtype.itemsize for s in stores], default=8)
        self.stores = [self._position(store.buffer, store.indices) for store in stores]
        for root in roots:
            self._walk(root)

    def _position(self, buffer: Buffer, indices: tuple[Expr, ...]) -> LinearForm:
        position = offset_in(buffer.type.shape, indices)
        self._walk(position)
        return _linear_form(position)

    def _walk(self, root: Expr) -> None:
        stack = [root]
        while stack:
            expr = stack.pop()
            if expr in self._seen:
                continue
            self._seen.add(expr)
            form = _linear_form(expr)
            if form:
                self.all.append(form)
            if isinstance(expr, Sum):
                stack += [term for term, _ in expr.terms if type(term) is not Axis]
            elif isinstance(expr, Load):
                position = offset_in(expr.buffer.type.shape, expr.indices)
                self.loads.append(_linear_form(position))
                stack.append(position)
                if expr.guard is not None:
                    stack.append(expr.guard)
            elif type(expr) is not Axis:
                stack += expr.children


def _linear_form(expr: Expr) -> LinearForm:
    if type(expr) is Axis:
        return {expr.number: 1}
    if isinstance(expr, Sum):
        return {t.number: f for t, f in expr.terms if isinstance(t, Axis)}
    return {}


def _collapsed(axes: Sequence[tuple[int, int]], accesses: _Accesses) -> tuple[NestLoop, ...]:
    """Loops over axes in order; neighbours are one loop where all indices allow it."""
    loops: list[NestLoop] = []
    for number, extent in axes:
        if loops and _are_one(loops[-1].axis, number, extent, accesses.all):
            before = loops.pop()
            loops.append(NestLoop((*before.axes, number), before.extent * extent, True))
        else:
            loops.append(NestLoop((number,), extent, True))
    return tuple(loops)


def _are_one(outer: int, inner: int, extent: int, forms: Iterable[LinearForm]) -> bool:
    return all(form.get(outer, 0) == form.get(inner, 0) * extent for form in forms)


def _cut(loops: tuple[NestLoop, ...], roots: Sequence[Expr]) -> tuple[NestLoop, ...]:
    """The loops, the innermost split where indices change their form."""
    if not loops or loops[-1].tile:
        return loops
    *outer, last = loops
    cuts = tuple(break_points(roots, last.axis, last.extent))
    return (*outer, NestLoop(last.axes, last.extent, last.independent, cuts))


def _independent_loops(
    axes: Sequence[tuple[int, int]], accesses: _Accesses
) -> tuple[NestLoop, ...]:
    """Loops over independent points: the innermost has the most accesses along memory."""
    loops = _collapsed(axes, accesses)
    if len(loops) < 2:
        return loops
    inner = min(reversed(loops), key=lambda loop: _stride_cost(loop, accesses))
    ordered = (*[loop for loop in loops if loop is not inner], inner)
    across = _across(ordered[:-1], accesses)
    if across is None or min(across.extent, inner.extent) < FEWEST_TILED:
        return ordered
    others = [loop for loop in ordered[:-1] if loop is not across]
    size = max(LINE // accesses.itemsize, 4)
    tiled = [NestLoop(loop.axes, loop.extent, True, tile=size) for loop in (across, inner)]
    return (*others, *tiled)


def _stride_cost(loop: NestLoop, accesses: _Accesses) -> float:
    """What steps along an axis cost: an access to another line of memory counts as eight."""
    cost = 0.0
    for weight, forms in ((2, accesses.stores), (1, accesses.loads)):
        for form in forms:
            factor = abs(form.get(loop.axis, 0))
            cost += weight * (factor if factor < 2 else 8)
    return cost + (8 if loop.extent < 8 else 0)


def _across(outer: Sequence[NestLoop], accesses: _Accesses) -> NestLoop | None:
    """An outer loop along which accesses are consecutive that are not along the inner one."""
    for loop in outer:
        if any(abs(form.get(loop.axis, 0)) == 1 for form in (*accesses.stores, *accesses.loads)):
            return loop
    return None


def _is_along_points(
    nest: ReduceNest | RowNest, accesses: _Accesses, steps: Sequence[NestLoop]
) -> bool:
    """Whether a fold reads along its last axis of points, and nothing along its steps."""
    if not nest.space or nest.space[-1] < FEWEST_COLUMNS:
        return False
    last, inner = len(nest.space) - 1, steps[-1].axis
    if any(abs(form.get(inner, 0)) == 1 and form.get(last, 0) for form in accesses.loads):
        return False
    return any(form.get(last, 0) == 1 for form in accesses.loads)
