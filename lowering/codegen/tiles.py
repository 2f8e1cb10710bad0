"""The text of a MapNest with a crossing: tiles turn in shared memory.

So that neighbouring threads touch neighbouring elements both when they load and when they store.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from lowering.buffer import Buffer
from lowering.codegen.body import Body
from lowering.codegen.crossings import Crossing, axes_of, word_of
from lowering.codegen.expressions import compute, index, index_type, stored, value
from lowering.codegen.flatten import Flattener
from lowering.codegen.shapes import TileShape
from lowering.codegen.signals import write_results
from lowering.codegen.vectors import load_text, pack, store_line
from lowering.kernel import MapNest, Store
from lowering.preamble import c_type
from tracegraph.scalar import Axis, Expr, Load, Sum

WORDS_IN_FLIGHT = 16
"""Words that a thread loads before it keeps the first."""


def write_tiles(body: Body, nest: MapNest, shape: TileShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    crossing, flat = shape.crossing, Flattener({})
    _place_tile(body, nest.space, shape)
    for number, load in enumerate(crossing.loads):
        kind, offset = c_type(load.dtype), crossing.offsets()[number]
        body.line(f"{kind}* const tile{number} = reinterpret_cast<{kind}*>(shared + {offset});")
    ends = [
        f"{name}_start + {crossing.side} <= {nest.space[axis]}"
        for axis, name in ((crossing.stored, "stored"), (crossing.loaded, "loaded"))
        if nest.space[axis] % crossing.side
    ]
    with body.block(f"if ({' && '.join(ends)})" if ends else ""):
        _turn(body, nest, flat, Walk(shape, nest.space))
    if ends:
        with body.block("else"):
            _turn(body, nest, flat, Walk(shape, nest.space, cut=True))


@dataclass(frozen=True, slots=True)
class Walk:
    """How the threads of a block go through its tile. If it is `cut`, a part of it lies outside of
    the space, and elements are accessed one by one.
    """

    shape: TileShape
    space: tuple[int, ...]
    cut: bool = False

    @property
    def crossing(self) -> Crossing:
        """What crosses."""
        return self.shape.crossing

    def width(self, accesses: Iterable[Load | Store], axis: int) -> int:
        """The elements that a thread accesses as one."""
        return 1 if self.cut else word_of(accesses, axis)


def _turn(body: Body, nest: MapNest, flat: Flattener, walk: Walk) -> None:
    _load_tile(body, flat, walk)
    body.line("__syncthreads();")
    _store_tile(body, nest, flat, walk)


def _load_tile(body: Body, flat: Flattener, walk: Walk) -> None:
    """Load the tile a word a thread at a time, and many words before the first of them is kept."""
    crossing = walk.crossing
    width = walk.width(crossing.loads, crossing.loaded)
    parts = crossing.side**2 // (walk.shape.threads * width)
    batch = min(parts, WORDS_IN_FLIGHT)
    loads = [_flat_load(flat, load) for load in crossing.loads]
    names = [body.fresh() for _ in loads]
    body.line("#pragma unroll 1")
    with body.block(f"for (int begin = 0; begin < {parts}; begin += {batch})"):
        for load, name in zip(loads, names, strict=True):
            body.line(f"{pack(load, width)} {name}[{batch}];")
        with _each_word(body, walk, crossing.loaded, width, batch, "begin + "):
            for load, name in zip(loads, names, strict=True):
                if width > 1:
                    compute(body, load.indices)
                    tests = _word_tests(body, load, width, crossing.loaded)
                    body.line(f"{name}[part] = {load_text(body, load, width, tests)};")
                else:
                    compute(body, [load])
                    body.line(f"{name}[part].items[0] = {value(body, load)};")
        uncut = replace(walk, cut=False)  # what lies outside is kept, too, and never used
        with _each_word(body, uncut, crossing.loaded, width, batch, "begin + "):
            for number, (load, name) in enumerate(zip(crossing.loads, names, strict=True)):
                place = f"&{_element(crossing, number, load, 'stored_place')}"
                body.line(f"*reinterpret_cast<{pack(load, width)}*>({place}) = {name}[part];")


def _store_tile(body: Body, nest: MapNest, flat: Flattener, walk: Walk) -> None:
    """Compute and store the tile, a word a thread at a time."""
    crossing = walk.crossing
    stores = list(map(flat.store, nest.stores))
    width = walk.width(nest.stores, crossing.stored)
    parts = crossing.side**2 // (walk.shape.threads * width)
    with _each_word(body, walk, crossing.stored, width, parts):
        if width == 1:
            _bind_staged(body, crossing, flat, "stored_place")
            write_results(body, stores, ())
            return
        axis = axes_of(nest.space)[crossing.stored]
        results = {store: body.fresh() for store in stores}
        for store, name in results.items():
            body.line(f"{pack(store, width)} {name};")
        body.line("#pragma unroll")
        with body.block(f"for (int item = 0; item < {width}; ++item)"):
            body.line(f"const {index_type(axis.extent + width)} stored_item = stored + item;")
            body.bind(axis, "stored_item")
            _bind_staged(body, crossing, flat, "(stored_place + item)")
            compute(body, stored(stores))
            for store, name in results.items():
                body.line(f"{name}.items[item] = {value(body, store.value)};")
        for store, name in results.items():
            compute(body, store.indices)
            tests = _word_tests(body, store, width, crossing.stored)
            body.line(store_line(body, store, width, name, tests))


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


def _each_word(
    body: Body, walk: Walk, fastest: int, width: int, parts: int, begin: str = ""
) -> ExitStack:
    """Text that runs for each word of the tile: `width` points along `fastest`, along which
    neighbouring threads are neighbours.
    """
    crossing, side = walk.crossing, walk.crossing.side
    stack = ExitStack()
    body.line(f"#pragma unroll {min(parts, WORDS_IN_FLIGHT)}")
    stack.enter_context(body.block(f"for (int part = 0; part < {parts}; ++part)"))
    number = f"({begin}part)" if begin else "part"
    body.line(f"const int place = {number} * {walk.shape.threads} + thread;")
    tests = []
    for axis, name in ((crossing.stored, "stored"), (crossing.loaded, "loaded")):
        along, across = f"place % {side // width} * {width}", f"place / {side // width}"
        body.line(f"const int {name}_place = {along if axis == fastest else across};")
        kind = index_type(walk.space[axis] + side)
        body.line(f"const {kind} {name} = {name}_start + {name}_place;")
        body.bind(axes_of(walk.space)[axis], name)
        if walk.cut and walk.space[axis] % side:
            tests.append(f"{name} < {walk.space[axis]}")
    if tests:
        stack.enter_context(body.block(f"if ({' && '.join(tests)})"))
    return stack


def _element(crossing: Crossing, number: int, load: Load, stored_place: str) -> str:
    return f"tile{number}[{stored_place} * {crossing.row(load)} + loaded_place]"


def _bind_staged(body: Body, crossing: Crossing, flat: Flattener, stored_place: str) -> None:
    for number, load in enumerate(crossing.loads):
        body.bind(flat(load), _element(crossing, number, load, stored_place))


def _flat_load(flat: Flattener, load: Load) -> Load:
    result = flat(load)
    assert isinstance(result, Load)
    return result


def _word_tests(body: Body, access: Load | Store, width: int, fastest: int) -> dict[Buffer, str]:
    """The test that a word along `fastest` is aligned, by its buffer; none if all are.

    Rows of odd length begin off alignment in any memory.
    """
    nbytes, pointer = access.buffer.type.dtype.itemsize * width, body.pointers[access.buffer]
    position = access.indices[0]
    terms = position.terms if isinstance(position, Sum) else ((position, 1),)
    others = [factor for term, factor in terms if not _is_axis(term, fastest)]
    offset = position.offset if isinstance(position, Sum) else 0
    if any(number % width for number in (*others, offset)):
        place = f"{pointer} + {index(body, position)}"
        return {access.buffer: f"(tg_u64({place}) & {nbytes - 1}) == 0"}
    if access.buffer.space == "input":
        return {access.buffer: f"(tg_u64({pointer}) & {nbytes - 1}) == 0"}
    return {}


def _is_axis(expr: Expr, number: int) -> bool:
    return isinstance(expr, Axis) and expr.number == number
