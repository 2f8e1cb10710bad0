"""Thread coarsening: one thread folds several neighbouring columns.

Narrow elements of these are loaded as one vector: a warp that loads one float16 for each thread
moves half the bytes of a warp that loads float32, at the same cost. And where there are few
columns, as the three coordinates in sums of forces on many bodies, a warp with a column for each
thread would load from many rows at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import gcd, prod

from lowering.codegen import geometry_records as records
from lowering.codegen.expressions import compute
from lowering.codegen.maps.loads import UnrolledParts, load_parts
from lowering.codegen.maps.vector_accesses import load_text
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.access_patterns import (
    MANY_ROWS,
    loop_is_contiguous,
    rows_are_far,
    steps_are_shared,
)
from lowering.plan.nests.analysis import loads, nest_accumulated
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Pass, RowNest
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.target.hardware import VECTOR_BYTES, WARP, WORD_BYTES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Expr, Sum
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.subexpressions import subexpressions

MIN_THREADS = WARP
"""Threads that load neighbouring columns: a warp has whole rows of sectors."""

MAX_ACCUMULATORS = 8
"""Accumulators of a coarsened thread: as many as one vector of 16-bit elements has columns."""

FEW_COLUMNS, MIN_ROWS = 3, 8
"""The most columns that one thread folds together, and the fewest rows for which it does.

Sums over the middle axis of 1024 x 1024 x 3 take 10.7 us that way instead of 14.6 in float32, and
14.6 instead of 17.4 in float64. With 4 columns they would gain or lose a few per cent; with 8, some
would take twice as long (H100)."""

MOST_TOGETHER, MANY_TOGETHER = 4, 2
"""Rows of a thread that share what they read at a step, at most, and multiples of `MANY_ROWS` that
are left as threads. The nearest of 64 centres to 2**20 points of 16 float32 take 167 us with one
row, 111 with two, 86 to 94 with four (H100)."""

ONCE_BYTES = 256
"""Bytes that a thread keeps of what its rows read once: 64 registers."""

SIZE_PER_WORD = 32
"""Multiples of LARGE_ROWS elements, for each word of columns that a thread folds, from which more
than one word pays. Column sums of float16 2048x4096 take 4.3 us with one word, 5.0 with two, 5.1
with four; of 4096x4096 6.2 with one instead of 8.1 (H200)."""


def coarsened(nest: CanonicalNest) -> CanonicalNest:
    """The nest; a reduction over leading axes of narrow elements has several columns for each
    point.
    """
    if not isinstance(nest, RowNest) or nest.signals or len(nest.passes) != 1:
        return nest
    if tiled_product(nest) is not None:
        return nest
    (only,) = nest.passes
    read = loads([accumulator.value for accumulator in only.accumulators])
    number = max((a for a, n in enumerate(nest.space) if n > 1), default=None)
    if number is None or not read or only.stores:
        return nest
    columns = nest.space[number]
    together = gcd(columns, max(MAX_ACCUMULATORS // len(only.accumulators), 1))
    if together > 1 and rows_are_far(nest):
        return _coarsened(nest, number, together)
    if loop_is_contiguous(nest):
        return nest
    if steps_are_shared(nest):
        rows = _rows_together(nest, columns)
        return nest if rows == 1 else _coarsened(nest, number, rows)
    if _has_few_columns(nest, columns):
        whole = _coarsened(nest, number, columns)
        return whole if loop_is_contiguous(whole) else nest
    columns_per_thread = _columns_per_thread(
        nest, columns, min(load.dtype.itemsize for load in read)
    )
    return nest if columns_per_thread == 1 else _coarsened(nest, number, columns_per_thread)


def _rows_together(nest: RowNest, columns: int) -> int:
    """The rows of a thread, which share what they read at a step: as many as its registers keep of
    what each reads once, if there are enough threads.
    """
    (only,) = nest.passes
    read = dict.fromkeys(loads([accumulator.value for accumulator in only.accumulators]))
    once = [load.dtype.itemsize for load in read if not _moves(load, len(nest.space))]
    most = min(
        MOST_TOGETHER,
        MAX_ACCUMULATORS // len(only.accumulators),
        prod(nest.space) // (MANY_TOGETHER * MANY_ROWS),
        ONCE_BYTES // max(sum(once), 1),
    )
    return next((rows for rows in (4, 2) if rows <= most and columns % rows == 0), 1)


def _moves(load: Load, rank: int) -> bool:
    """Whether a load depends on the steps, whose axes are numbered from `rank` on."""
    axes = [expr for expr in subexpressions(load.indices) if type(expr) is Axis]
    return any(axis.number >= rank for axis in axes)


def _has_few_columns(nest: RowNest, columns: int) -> bool:
    """Whether a thread can fold all columns of a row, and there are many rows, which are long."""
    own = len(nest.passes[0].accumulators)
    many = prod(nest.space) >= MIN_ROWS * columns and prod(nest.loop) >= WARP
    return columns <= FEW_COLUMNS and columns * own <= MAX_ACCUMULATORS and many


def _columns_per_thread(nest: RowNest, columns: int, narrowest: int) -> int:
    """The columns of a thread: a vector of them if fewer threads still fill the device, else a
    word, else one.
    """
    size, own = prod(nest.space) * prod(nest.loop), len(nest.passes[0].accumulators)
    word = WORD_BYTES // narrowest
    columns_per_thread = VECTOR_BYTES // narrowest if word > 1 else 1
    while columns_per_thread > 1:
        few = (
            columns_per_thread * own <= MAX_ACCUMULATORS
            and size >= columns_per_thread // word * SIZE_PER_WORD * records.LARGE_ROWS
        )
        whole = columns % columns_per_thread == 0 and columns >= MIN_THREADS * columns_per_thread
        if whole and (few or (columns_per_thread == word and size >= records.LARGE_ROWS)):
            return columns_per_thread
        columns_per_thread = columns_per_thread // 2 if columns_per_thread > word else 1
    return 1


def _coarsened(nest: RowNest, number: int, columns_per_thread: int) -> RowNest:
    column = Axis.make(number, nest.space[number])
    word = Axis.make(number, nest.space[number] // columns_per_thread)
    (only,) = nest.passes
    count = len(only.accumulators)
    copies = []
    for item in range(columns_per_thread):
        replacement: dict[Expr, Expr] = {column: word * columns_per_thread + item}
        for own in nest_accumulated(nest):
            replacement[own] = Accumulated.make(item * count + own.number, own.dtype)
        copy = map_nest(nest, replacement)
        assert isinstance(copy, RowNest)
        copies.append(copy)
    return replace(
        nest,
        space=(*nest.space[:number], word.extent, *nest.space[number + 1 :]),
        passes=(Pass(tuple(a for copy in copies for a in copy.passes[0].accumulators), ()),),
        stores=tuple(store for copy in copies for store in copy.stores),
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Loads of neighbouring elements that form an aligned vector."""

    loads: tuple[Load, ...]

    def moves(self, step: Axis) -> bool:
        """Whether the elements are others at each step."""
        return step in subexpressions(self.loads[0].indices)


def runs_of(roots: Iterable[Expr]) -> list[Run]:
    """The runs among the flat loads of expressions, each as long as one access can be."""
    found = dict.fromkeys([load for load in loads(list(roots)) if load.guard is None])
    runs: list[Run] = []
    covered: set[Load] = set()
    length = max([VECTOR_BYTES // load.dtype.itemsize for load in found], default=1)
    while length > 1:
        for load in found:
            nbytes = length * load.dtype.itemsize
            if not WORD_BYTES <= nbytes <= VECTOR_BYTES or not _is_multiple(load, length):
                continue
            run = [Load.make(load.buffer, (load.indices[0] + k,), None) for k in range(length)]
            if all(other in found for other in run) and covered.isdisjoint(run):
                runs.append(Run(tuple(run)))
                covered.update(run)
        length //= 2
    return runs


def longest(runs: Iterable[Run]) -> int:
    """The elements of the longest run."""
    return max((len(run.loads) for run in runs), default=1)


def load_runs(writer: SourceWriter, runs: Iterable[Run], aligned: Mapping[Buffer, str]) -> None:
    """Load each run as a vector, and bind its elements."""
    for run in runs:
        first = run.loads[0]
        compute(writer, first.indices)
        name = writer.fresh()
        writer.line(f"const auto {name} = {load_text(writer, first, len(run.loads), aligned)};")
        for place, load in enumerate(run.loads):
            writer.bind(load, f"{name}.items[{place}]")


def load_runs_of_steps(
    parts: UnrolledParts, runs: Sequence[Run], aligned: Mapping[Buffer, str], part: str = "part"
) -> None:
    """Load the runs of several steps before the first is used, and bind their elements: those of a
    `part`.
    """
    widths = {run.loads[0]: len(run.loads) for run in runs}
    names = load_parts(parts, widths, aligned)
    for run in runs:
        for number, load in enumerate(run.loads):
            parts.writer.bind(load, f"{names[run.loads[0]]}[{part}].items[{number}]")


def _is_multiple(load: Load, length: int) -> bool:
    (index,) = load.indices
    if not isinstance(index, Sum):
        return False
    return all(number % length == 0 for number in (index.offset, *(f for _, f in index.terms)))
