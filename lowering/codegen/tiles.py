"""The text of a MapNest with a crossing: tiles turn in shared memory.

So that neighbouring threads touch neighbouring elements both when they load and when they store.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from lowering.codegen.body import Body
from lowering.codegen.crossings import Crossing, axes_of
from lowering.codegen.expressions import compute, index_type, value
from lowering.codegen.flatten import Flattener
from lowering.codegen.shapes import TileShape
from lowering.codegen.signals import write_results
from lowering.kernel import MapNest
from lowering.preamble import c_type
from tracegraph.scalar import Expr, Load


def write_tiles(body: Body, nest: MapNest, shape: TileShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    crossing, flat = shape.crossing, Flattener({})
    _place_tile(body, nest.space, shape)
    staged = [flat(load) for load in crossing.loads]
    for number, load in enumerate(crossing.loads):
        kind, offset = c_type(load.dtype), crossing.offsets()[number]
        body.line(f"{kind}* const tile{number} = reinterpret_cast<{kind}*>(shared + {offset});")
    with _each_point(body, nest.space, shape, fastest=crossing.loaded):
        compute(body, staged)
        for number, (load, text) in enumerate(zip(crossing.loads, staged, strict=True)):
            body.line(f"{_element(crossing, number, load)} = {value(body, text)};")
    body.line("__syncthreads();")
    with _each_point(body, nest.space, shape, fastest=crossing.stored):
        _bind_staged(body, crossing, staged)
        write_results(body, map(flat.store, nest.stores), ())


def _place_tile(body: Body, space: tuple[int, ...], shape: TileShape) -> None:
    """Declare where the block's tile begins along both axes, and its place along the others."""
    crossing, side = shape.crossing, shape.crossing.side
    along_stored = -(-space[crossing.stored] // side)
    along_loaded = -(-space[crossing.loaded] // side)
    for number, start, divisor, count in (
        (crossing.stored, "stored_start", 1, along_stored),
        (crossing.loaded, "loaded_start", along_stored, along_loaded),
    ):
        kind = index_type(space[number] + side)
        body.line(f"const {kind} {start} = {kind}(block / {divisor} % {count}) * {side};")
    divisor = along_stored * along_loaded
    for axis in reversed(axes_of(space)):
        if axis.number in (crossing.stored, crossing.loaded):
            continue
        name = body.fresh()
        body.line(f"const int {name} = block / {divisor} % {max(axis.extent, 1)};")
        body.bind(axis, name)
        divisor *= axis.extent


def _each_point(body: Body, space: tuple[int, ...], shape: TileShape, fastest: int) -> ExitStack:
    """Text that runs for each point of the tile; neighbouring threads are neighbours along
    `fastest`.
    """
    crossing, side = shape.crossing, shape.crossing.side
    stack = ExitStack()
    body.line("#pragma unroll")
    each = f"for (int part = 0; part < {side * side // shape.threads}; ++part)"
    stack.enter_context(body.block(each))
    body.line(f"const int place = part * {shape.threads} + thread;")
    tests = []
    for axis, name in ((crossing.stored, "stored"), (crossing.loaded, "loaded")):
        operation = "%" if axis == fastest else "/"
        body.line(f"const int {name}_place = place {operation} {side};")
        kind = index_type(space[axis] + side)
        body.line(f"const {kind} {name} = {name}_start + {name}_place;")
        body.bind(axes_of(space)[axis], name)
        if space[axis] % side:
            tests.append(f"{name} < {space[axis]}")
    if tests:
        stack.enter_context(body.block(f"if ({' && '.join(tests)})"))
    return stack


def _element(crossing: Crossing, number: int, load: Load) -> str:
    return f"tile{number}[stored_place * {crossing.row(load)} + loaded_place]"


def _bind_staged(body: Body, crossing: Crossing, staged: Sequence[Expr]) -> None:
    for number, (load, expr) in enumerate(zip(crossing.loads, staged, strict=True)):
        body.bind(expr, _element(crossing, number, load))
