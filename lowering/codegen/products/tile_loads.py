"""Loads of a tile: elements of both factors, to registers first, and then to shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from lowering.codegen.expressions import compute, index, index_type, value
from lowering.codegen.geometry_records import ProductGeometry
from lowering.codegen.maps.vector_accesses import address
from lowering.codegen.preamble import c_type
from lowering.codegen.products.tile_sides import SUMMED, Side
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div
from tracegraph.ir.scalar import Axis
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions

AHEAD_BYTES = 8
"""Bytes of what a computed factor is made of at each step, up to which that waits in registers: two
words, as many as a factor of float64 has."""


def parts_of(side: Side, g: ProductGeometry) -> int:
    """The accesses by which a thread loads its elements of a tile."""
    return ceil_div(g.groups * side.side * g.depth, g.threads * side.loaded)


def declare_own(writer: SourceWriter, side: Side, g: ProductGeometry) -> None:
    """Compute what the indices of a thread's elements have in common at all steps."""
    parts = parts_of(side, g)
    for number, (axis, _) in enumerate(side.factor.own):
        writer.line(f"{index_type(axis.extent)} {side.name}_own{number}[{parts}];")
    if not side.factor.own:
        return
    with writer.unrolled(f"for (int part = 0; part < {parts}; ++part)"):
        _bind_own(writer, side, g)
        compute(writer, [expr for _, expr in side.factor.own])
        for number, (_, expr) in enumerate(side.factor.own):
            writer.line(f"{side.name}_own{number}[part] = {index(writer, expr)};")


def _bind_own(writer: SourceWriter, side: Side, g: ProductGeometry) -> None:
    """Bind the output and the matrix of a part; beyond the last one, to the last one."""
    _, own = _place(side, g)
    last = side.own.extent - (1 if side.steps_first else side.loaded)
    writer.line(f"const {side.index_type} place = start_{side.name} + {own};")
    limit = "" if side.is_whole else f" < {last} ? place : {last}"
    writer.line(f"const {side.index_type} own = place{limit};")
    writer.bind(side.own, "own")
    group = f"start_batch + {_group(side, g)}"
    if g.batch % g.groups or not _is_even(side, g):
        group = f"({group} < {g.batch} ? {group} : {g.batch - 1})"
    writer.line(f"const int own_batch = {group};")
    writer.bind(side.batch, "own_batch")


def loaded_ahead(side: Side, g: ProductGeometry) -> Sequence[Load]:
    """The loads of a computed factor whose values wait in registers, and not the factor: then a
    thread multiplies while they are on their way. None if these are too many registers.
    """
    factor = side.factor.factor
    if side.loaded > 1 or isinstance(factor, Load):
        return ()
    found = list(dict.fromkeys(loads([factor])))
    steps = {SUMMED, *(axis.number for axis, _ in side.factor.steps)}
    moving = [load for load in found if not steps.isdisjoint(_axes(load))]
    few = sum([load.dtype.itemsize for load in moving]) <= AHEAD_BYTES
    others_are_once = len(moving) == len(found) or "part" not in _place(side, g)[1]
    apart = all(not loads(load.indices) and load.guard is None for load in found)
    return found if few and apart and others_are_once else ()


def declare_next(writer: SourceWriter, side: Side, g: ProductGeometry, kind: str) -> None:
    """Declare the registers in which a thread's elements of the next tile wait."""
    ahead = loaded_ahead(side, g)
    for number, load in enumerate(ahead):
        writer.line(f"{c_type(load.dtype)} {side.name}_ahead{number}[{parts_of(side, g)}];")
    if not ahead:
        writer.line(f"{kind} {side.name}_next[{parts_of(side, g) * side.loaded}];")


def load_next(
    writer: SourceWriter,
    side: Side,
    step: Axis,
    g: ProductGeometry,
    begin: str,
    aligned: Mapping[Buffer, str],
) -> None:
    """Load a thread's elements of the next tile to registers; 0 beyond the end of the sum.

    There are no branches, so that all loads are in flight together.
    """
    ahead, rest = loaded_ahead(side, g), bool(step.extent % g.depth)
    with _each_part(writer, side, step, g, begin):
        if ahead:
            compute(writer, ahead)
            for number, load in enumerate(ahead):
                writer.line(f"{side.name}_ahead{number}[part] = {value(writer, load)};")
        elif side.loaded > 1:
            _load_vector(writer, side, rest, aligned)
        else:
            _load_element(writer, side, rest)


@contextmanager
def _each_part(
    writer: SourceWriter, side: Side, step: Axis, g: ProductGeometry, begin: str
) -> Iterator[None]:
    """Write a loop over the parts of a tile that begins at a step, with their indices bound."""
    steps, _ = _place(side, g)
    once = "part" not in steps
    rest = bool(step.extent % g.depth)

    def bind_step() -> None:
        writer.line(f"const int next = {begin} + {steps};")
        last = side.loaded if side.steps_first else 1
        writer.line(f"const int step = {f'next < end ? next : end - {last}' if rest else 'next'};")
        writer.bind(step, "step")
        compute(writer, [expr for _, expr in side.factor.steps])
        for axis, expr in side.factor.steps:
            writer.bind(axis, index(writer, expr))

    with writer.block(""):
        if once:
            bind_step()
        with writer.unrolled(f"for (int part = 0; part < {parts_of(side, g)}; ++part)"):
            if not once:
                bind_step()
            _bind_own(writer, side, g)
            for number, (axis, _) in enumerate(side.factor.own):
                writer.bind(axis, f"{side.name}_own{number}[part]")
            yield


def _load_element(writer: SourceWriter, side: Side, rest: bool) -> None:
    """Load an element, and compute what the factor is of it."""
    compute(writer, [side.factor.factor])
    found = _kept(side, rest, value(writer, side.factor.factor))
    writer.line(f"{side.name}_next[part] = {found};")


def _load_vector(
    writer: SourceWriter, side: Side, rest: bool, aligned: Mapping[Buffer, str]
) -> None:
    """Load neighbouring elements as one vector; or one by one, if they may not be aligned.

    Either way they are loaded to the registers in which they wait, and nothing waits for them.
    """
    load, width = side.factor.factor, side.loaded
    assert isinstance(load, Load)
    compute(writer, load.indices)
    place = address(writer, load)
    pack = f"tg_pack<{c_type(load.dtype)}, {width}>"
    writer.line(f"{pack} loaded;")
    whole = f"loaded = *reinterpret_cast<const {pack}*>({place});"
    if load.buffer in aligned:
        with writer.block(f"if ({aligned[load.buffer]})"):
            writer.line(whole)
        with writer.block("else"), writer.unrolled(f"for (int k = 0; k < {width}; ++k)"):
            writer.line(f"loaded.items[k] = ({place})[k];")
    else:
        writer.line(whole)
    with writer.unrolled(f"for (int item = 0; item < {width}; ++item)"):
        found = _kept(side, rest, "loaded.items[item]")
        writer.line(f"{side.name}_next[part * {width} + item] = {found};")


def _kept(side: Side, rest: bool, found: str) -> str:
    """What is kept of an element: 0 beyond the end; of matrices of warps, the first bits."""
    found = f"tg_rounded_tf32({found})" if side.by_warps else found
    return f"next < end ? {found} : 0" if rest else found


def keep_next(writer: SourceWriter, side: Side, step: Axis, g: ProductGeometry, begin: str) -> None:
    """Write the elements in registers to the tiles in shared memory."""
    size, width = g.groups * side.side * g.depth, side.loaded
    place, own = _place(side, g)
    place, own = (f"{place} + item", own) if side.steps_first else (place, f"{own} + item")
    row = f"{_group(side, g)} * {g.depth} + {place}"
    target = f"{side.name}_tile[({row}) * {side.stride} + {own}]"
    test = f"if ((thread + part * {g.threads}) * {width} < {size}) "
    test = "" if _is_even(side, g) else test
    ahead = loaded_ahead(side, g)
    if ahead:
        with _each_part(writer, side, step, g, begin):
            for number, load in enumerate(ahead):
                writer.bind(load, f"{side.name}_ahead{number}[part]")
            compute(writer, [side.factor.factor])
            found = value(writer, side.factor.factor)
            found = _kept(side, bool(step.extent % g.depth), found)
            writer.line("const int item = 0;")
            writer.line(f"{test}{target} = {found};")
        return
    with (
        writer.unrolled(f"for (int part = 0; part < {parts_of(side, g)}; ++part)"),
        writer.unrolled(f"for (int item = 0; item < {width}; ++item)"),
    ):
        source = f"{side.name}_next[part * {width} + item]"
        writer.line(f"{test}{target} = {source};")


def _axes(load: Load) -> set[int]:
    return {expr.number for expr in subexpressions(load.indices) if type(expr) is Axis}


def _is_even(side: Side, g: ProductGeometry) -> bool:
    """Whether all threads load as many elements."""
    return g.groups * side.side * g.depth % (g.threads * side.loaded) == 0


def _place(side: Side, g: ProductGeometry) -> tuple[str, str]:
    """The step and the output of a part that a thread loads, in the tile."""
    inner, outer = (g.depth, side.side) if side.steps_first else (side.side, g.depth)
    count = inner // side.loaded
    place = "thread" if g.threads % count == 0 else f"(thread + part * {g.threads})"
    near = f"{place} % {count}" + (f" * {side.loaded}" if side.loaded > 1 else "")
    far = f"(thread + part * {g.threads}) / {count} % {outer}"
    return (near, far) if side.steps_first else (far, near)


def _group(side: Side, g: ProductGeometry) -> str:
    """The matrix of a part, among those of a block."""
    parts = side.side * g.depth // side.loaded
    return "0" if g.groups == 1 else f"(thread + part * {g.threads}) / {parts}"
