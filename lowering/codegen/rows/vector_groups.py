"""Steps of a loop taken by groups, each of which accesses memory by vectors.

Elements of one or two bytes are moved at the pace of memory only so: an access of one of them costs
as much as one of sixteen bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lowering.codegen.expressions import (
    compute,
    index_type,
    operand,
    pending,
    stored,
    value,
)
from lowering.codegen.flatten import STEP
from lowering.codegen.geometry_records import WARP, ReduceShape
from lowering.codegen.maps.loads import Parts, load_parts
from lowering.codegen.maps.stores import declare_results, store_results, write_item
from lowering.codegen.maps.vectors import Neighbours, Vectors, compute_uniform, pack_of, vectors_of
from lowering.codegen.preamble import value_type
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.source_writer import Body
from lowering.plan.buffer import Buffer
from tracegraph.ir.scalar import Axis, Expr, Load


@dataclass(frozen=True, slots=True)
class Groups:
    """`parts` groups of `width` steps that a lane takes together: all loads first.

    `first` is the text of the first step of group `part`. Where `test` fails, the group is left out
    as a whole. `neighbours` are the lanes that take the following groups, if it is known of which.
    """

    width: int
    parts: int
    first: str
    test: str | None
    neighbours: Neighbours | None

    @property
    def steps(self) -> int:
        """Steps that a lane takes together."""
        return self.width * self.parts


def vectors_of_pass(flat: FlatPass, width: int) -> Vectors:
    """What of a pass over groups of steps is accessed by vectors."""
    return vectors_of(flat.stores, width, flat.values, STEP)


def usable(shape: ReduceShape, passes: Iterable[FlatPass]) -> ReduceShape:
    """The shape, without groups if no pass has vectors: lanes take the same steps in all passes."""
    if any(vectors_of_pass(flat, shape.width).accesses for flat in passes):
        return shape
    return replace(shape, width=1)


def take_groups(
    body: Body,
    flat: FlatPass,
    step: Axis,
    groups: Groups,
    vectors: Vectors,
    aligned: Mapping[Buffer, str],
    total: str,
    keep: Mapping[Expr, str] | None = None,
    kept: Mapping[Expr, str] | None = None,
) -> None:
    """Fold groups into the accumulators called `total`, and make the stores of their steps.

    `keep` names the arrays in which the values of each group stay, and `kept` those that hold them
    already.
    """
    keep, kept = keep or {}, kept or {}
    vectors = _needed(body, flat, vectors, kept)
    widths = dict.fromkeys(vectors.loads, groups.width)
    taken = _parts(body, step, groups)
    loaded = load_parts(taken, widths, aligned)
    terms = [fold.short_term(e) for fold, e in zip(flat.folds, flat.values, strict=True)]
    elements = [term or e for term, e in zip(terms, flat.values, strict=True)]
    sums = [body.fresh() if term else None for term in terms]
    for short in filter(None, sums):
        body.line(f"int {short} = 0;")
    kind = _index_type(step, groups)
    with taken.each():
        compute_uniform(body, vectors, step, "first")
        results = declare_results(body, vectors.stores, groups.width)
        held: dict[Expr, str] = dict(loaded.items())
        made = {expr: body.fresh() for expr in keep if expr not in held}
        for expr, name in made.items():
            body.line(f"{pack_of(expr, groups.width)} {name};")
        with body.unrolled(f"for (int item = 0; item < {groups.width}; ++item)"):
            body.line(f"const {kind} step = first + item;")
            body.bind(step, "step")
            for load, name in loaded.items():
                body.bind(load, f"{name}[part].items[item]")
            for expr, name in kept.items():
                body.bind(expr, f"{name}[part].items[item]")
            compute(body, [*keep, *elements, *stored(flat.stores)])
            for expr, name in made.items():
                body.line(f"{name}.items[item] = {body.name(expr)};")
            for fold, element, own in zip(flat.folds, elements, sums, strict=True):
                if own:
                    body.line(f"{own} += {value(body, element)};")
                else:
                    fold.absorb(body, total, (operand(body, element), "step"))
            write_item(body, flat.stores, results)
        for expr, name in keep.items():
            own = f"tg_packed({made[expr]})" if expr in made else f"{held[expr]}[part]"
            body.line(f"{name}[part] = {own};")
        store_results(body, results, groups.width, STEP, aligned, groups.neighbours)
    for fold, own in zip(flat.folds, sums, strict=True):
        if own:
            fold.absorb(body, total, (f"tg_cast<{value_type(fold.dtype)}>({own})",))


def walk_groups(
    body: Body,
    flat: FlatPass,
    step: Axis,
    shape: ReduceShape,
    vectors: Vectors,
    aligned: Mapping[Buffer, str],
    parts: Sequence[int],
    end: str,
    total: str,
    backwards: bool,
) -> None:
    """Take all groups from `base` on that begin before `end`: as many together as the first of
    `parts` for as long as there are so many, then as many as the next. Backwards, it takes the same
    groups, the last first.
    """
    stride = shape.lanes * shape.width
    loops = _loops_back if backwards else _loops
    for together, left in loops(body, stride, parts, end):
        neighbours = neighbouring_lanes(shape, step, left)
        groups = Groups(shape.width, together, _first(together, stride), None, neighbours)
        take_groups(body, flat, step, groups, vectors, aligned, total)


def _loops(
    body: Body, stride: int, parts: Sequence[int], end: str
) -> Iterator[tuple[int, str | None]]:
    """Loops over so many groups together, each with the text of the steps left, if that is known
    of the lanes of a warp.
    """
    for together in parts:
        last = f"base + {(together - 1) * stride}" if together > 1 else "base"
        with body.block(f"for (; {last} < {end}; base += {together * stride})"):
            # after a loop over several parts, the lanes that are left need not begin a warp
            yield together, f"{end} - base" if len(parts) == 1 else None


def _loops_back(
    body: Body, stride: int, parts: Sequence[int], end: str
) -> Iterator[tuple[int, str | None]]:
    body.line(f"const auto origin = base, count = ({end} - base + {stride - 1}) / {stride};")
    body.line("auto left = count;")
    for position, together in reversed(list(enumerate(parts))):
        stop = f"count / {parts[0]} * {parts[0]}" if position else "0"
        with body.block(f"for (; left > {stop}; left -= {together})"):
            body.line(f"base = origin + (left - {together}) * {stride};")
            yield together, None


def neighbouring_lanes(shape: ReduceShape, step: Axis, left: str | None) -> Neighbours | None:
    """The lanes of a warp that take groups together, if it is known which: all, or the first, up to
    the end of the `left` steps from a lane's group on.
    """
    lanes, stride = min(shape.lanes, WARP), shape.lanes * shape.width
    if step.extent // shape.width * shape.width % stride == 0:
        return Neighbours(lanes, str(lanes))
    return None if left is None else Neighbours(lanes, f"({left}) / {shape.width}")


def _first(parts: int, stride: int) -> str:
    return f"base + part * {stride}" if parts > 1 else "base"


def _parts(body: Body, step: Axis, groups: Groups) -> Parts:
    """The groups as parts, with the step bound to the first of each."""
    lines = [f"const {_index_type(step, groups)} first = {groups.first};"]
    if groups.test is not None:
        lines.append(f"if (!({groups.test})) continue;")
    return Parts(body, groups.parts, tuple(lines), step, "first")


def _index_type(step: Axis, groups: Groups) -> str:
    return index_type(step.extent + groups.steps * 1024)


def _needed(body: Body, flat: FlatPass, vectors: Vectors, kept: Mapping[Expr, str]) -> Vectors:
    """The vectors without what is known already."""
    with body.scope():
        for expr, name in kept.items():
            body.bind(expr, name)
        computed = set(pending(body, flat.roots))
    loads: Sequence[Load] = [load for load in vectors.loads if load in computed]
    uniform = [expr for expr in vectors.uniform if expr in computed]
    return replace(vectors, uniform=tuple(uniform), loads=tuple(loads))
