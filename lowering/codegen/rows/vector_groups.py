"""Vectorised loops of lanes: steps are taken in groups, each of which is one vector access.

Elements of one or two bytes need this to reach the bandwidth of memory: an access to one of them
costs as much as an access to sixteen bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lowering.codegen.expressions import (
    compute,
    index_type,
    operand,
    pending,
    stored,
    value,
)
from lowering.codegen.flatten import STEP
from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.maps.loads import UnrolledParts, load_parts
from lowering.codegen.maps.stores import declare_results, store_results, write_item
from lowering.codegen.maps.vector_accesses import (
    Neighbours,
    Vectors,
    compute_uniform,
    pack_of,
    vectors_of,
)
from lowering.codegen.preamble import value_type
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.hardware import MAX_BLOCK_THREADS, WARP
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True, slots=True)
class Groups:
    """`parts` groups of `width` steps that a lane takes in one iteration: all loads first.

    `first` is the text of the first step of group `part`. A group whose `test` fails is skipped.
    `neighbours` are the lanes that take the next groups, if they are known.
    """

    width: int
    parts: int
    first: str
    test: str | None
    neighbours: Neighbours | None

    @property
    def steps(self) -> int:
        """Steps of a lane in one iteration."""
        return self.width * self.parts


def vectors_of_pass(flat: FlatPass, width: int) -> Vectors:
    """The vector accesses of a pass over groups of steps."""
    return vectors_of(flat.stores, width, flat.values, STEP)


def usable(geometry: RowGeometry, passes: Iterable[FlatPass]) -> RowGeometry:
    """The geometry, with a width of 1 if no pass has vectors: lanes have the same steps in all."""
    if any(vectors_of_pass(flat, geometry.width).accesses for flat in passes):
        return geometry
    return replace(geometry, width=1)


def write_groups(
    writer: SourceWriter,
    flat: FlatPass,
    step: Axis,
    groups: Groups,
    vectors: Vectors,
    aligned: Mapping[Buffer, str],
    total: str,
    keep: Mapping[Expr, str] | None = None,
    kept: Mapping[Expr, str] | None = None,
) -> None:
    """Fold groups into the accumulators called `total`, and write the stores of their steps.

    `keep` names the register arrays that the values of each group are written to, and `kept` those
    that hold values already.
    """
    keep, kept = keep or {}, kept or {}
    vectors = _needed(writer, flat, vectors, kept)
    widths = dict.fromkeys(vectors.loads, groups.width)
    taken = _parts(writer, step, groups)
    loaded = load_parts(taken, widths, aligned)
    terms = [fold.narrow_term(e) for fold, e in zip(flat.folds, flat.values, strict=True)]
    elements = [term or e for term, e in zip(terms, flat.values, strict=True)]
    sums = [writer.fresh() if term else None for term in terms]
    for short in filter(None, sums):
        writer.line(f"int {short} = 0;")
    kind = _index_type(step, groups)
    with taken.each():
        compute_uniform(writer, vectors, step, "first")
        results = declare_results(writer, vectors.stores, groups.width)
        held: dict[Expr, str] = dict(loaded.items())
        made = {expr: writer.fresh() for expr in keep if expr not in held}
        for expr, name in made.items():
            writer.line(f"{pack_of(expr, groups.width)} {name};")
        with writer.unrolled(f"for (int item = 0; item < {groups.width}; ++item)"):
            writer.line(f"const {kind} step = first + item;")
            writer.bind(step, "step")
            for load, name in loaded.items():
                writer.bind(load, f"{name}[part].items[item]")
            for expr, name in kept.items():
                writer.bind(expr, f"{name}[part].items[item]")
            compute(writer, [*keep, *elements, *stored(flat.stores)])
            for expr, name in made.items():
                writer.line(f"{name}.items[item] = {writer.name(expr)};")
            for fold, element, own in zip(flat.folds, elements, sums, strict=True):
                if own:
                    writer.line(f"{own} += {value(writer, element)};")
                else:
                    fold.take(writer, total, operand(writer, element), "step")
            write_item(writer, flat.stores, results)
        for expr, name in keep.items():
            own = f"tg_packed({made[expr]})" if expr in made else f"{held[expr]}[part]"
            writer.line(f"{name}[part] = {own};")
        store_results(writer, results, groups.width, STEP, aligned, groups.neighbours)
    for fold, own in zip(flat.folds, sums, strict=True):
        if own:
            fold.accumulate(writer, total, (f"tg_cast<{value_type(fold.dtype)}>({own})",))


def loop_over_groups(
    writer: SourceWriter,
    flat: FlatPass,
    step: Axis,
    geometry: RowGeometry,
    vectors: Vectors,
    aligned: Mapping[Buffer, str],
    parts: Sequence[int],
    end: str,
    total: str,
    backwards: bool,
) -> None:
    """Write loops over the groups from `base` on that begin before `end`: `parts[0]` of them in an
    iteration while there are enough, then `parts[1]`. Backwards, the same groups in reverse.
    """
    stride = geometry.lanes * geometry.width
    loops = _loops_back if backwards else _loops
    for together, left in loops(writer, stride, parts, end):
        neighbours = neighbouring_lanes(geometry, step, left)
        groups = Groups(geometry.width, together, _first(together, stride), None, neighbours)
        write_groups(writer, flat, step, groups, vectors, aligned, total)


def _loops(
    writer: SourceWriter, stride: int, parts: Sequence[int], end: str
) -> Iterator[tuple[int, str | None]]:
    """Write a loop for each number of groups in an iteration. Yields the number, and the text of
    the steps left if the lanes of a warp are known to be neighbours.
    """
    for together in parts:
        last = f"base + {(together - 1) * stride}" if together > 1 else "base"
        with writer.block(f"for (; {last} < {end}; base += {together * stride})"):
            # after a loop over several groups, the lanes that are left need not begin a warp
            yield together, f"{end} - base" if len(parts) == 1 else None


def _loops_back(
    writer: SourceWriter, stride: int, parts: Sequence[int], end: str
) -> Iterator[tuple[int, str | None]]:
    writer.line(f"const auto origin = base, count = ({end} - base + {stride - 1}) / {stride};")
    writer.line("auto left = count;")
    for position, together in reversed(list(enumerate(parts))):
        stop = f"count / {parts[0]} * {parts[0]}" if position else "0"
        with writer.block(f"for (; left > {stop}; left -= {together})"):
            writer.line(f"base = origin + (left - {together}) * {stride};")
            yield together, None


def neighbouring_lanes(geometry: RowGeometry, step: Axis, left: str | None) -> Neighbours | None:
    """The lanes of a warp that take groups at the same time, if they are known: all, or the first
    ones, by the `left` steps from a lane's group on.
    """
    lanes, stride = min(geometry.lanes, WARP), geometry.lanes * geometry.width
    if step.extent // geometry.width * geometry.width % stride == 0:
        return Neighbours(lanes, str(lanes))
    return None if left is None else Neighbours(lanes, f"({left}) / {geometry.width}")


def _first(parts: int, stride: int) -> str:
    return f"base + part * {stride}" if parts > 1 else "base"


def _parts(writer: SourceWriter, step: Axis, groups: Groups) -> UnrolledParts:
    """The groups as parts, whose step is bound to the first of each."""
    lines = [f"const {_index_type(step, groups)} first = {groups.first};"]
    if groups.test is not None:
        lines.append(f"if (!({groups.test})) continue;")
    return UnrolledParts(writer, groups.parts, tuple(lines), step, "first")


def _index_type(step: Axis, groups: Groups) -> str:
    return index_type(step.extent + groups.steps * MAX_BLOCK_THREADS)


def _needed(
    writer: SourceWriter, flat: FlatPass, vectors: Vectors, kept: Mapping[Expr, str]
) -> Vectors:
    """The vectors that a pass needs besides the values that are kept."""
    with writer.scope():
        for expr, name in kept.items():
            writer.bind(expr, name)
        computed = set(pending(writer, flat.roots))
    loads: Sequence[Load] = [load for load in vectors.loads if load in computed]
    uniform = [expr for expr in vectors.uniform if expr in computed]
    return replace(vectors, uniform=tuple(uniform), loads=tuple(loads))
