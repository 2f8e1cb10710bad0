"""The text of a MapNest with a crossing: tiles turn in shared memory.

So that neighbouring threads touch neighbouring elements both when they load and when they store.
"""

from __future__ import annotations

from dataclasses import dataclass

from lowering.codegen.expressions import compute, index_type, stored, value
from lowering.codegen.flatten import Flattener
from lowering.codegen.geometry_records import TileShape
from lowering.codegen.maps.stores import declare_results, write_item
from lowering.codegen.maps.tile_accesses import (
    Points,
    Skew,
    Tile,
    Words,
    declare_skew,
    declare_words,
    each_point,
    each_word,
    overhang,
    rim,
    word_test,
    word_widths,
)
from lowering.codegen.maps.transpose_tiles import axes_of
from lowering.codegen.maps.vectors import load_text, pack, store_line
from lowering.codegen.preamble import c_type
from lowering.codegen.signals import write_results
from lowering.codegen.source_writer import Body
from lowering.plan.kernel import MapNest, Store
from tracegraph.ir.scalar import Load


def write_tiles(body: Body, nest: MapNest, shape: TileShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    crossing, space = shape.crossing, nest.space
    _place_tile(body, space, shape)
    for number, load in enumerate(crossing.loads):
        kind, offset = c_type(load.dtype), crossing.offsets()[number]
        body.line(f"{kind}* const tile{number} = reinterpret_cast<{kind}*>(shared + {offset});")
    whole, some = [], []
    for axis, past in ((crossing.stored, crossing.overhang), (crossing.loaded, 0)):
        start = f"{Tile(shape, space, cut=False).name(axis)}_start"
        if crossing.anchored(axis):
            whole.append(f"{start} >= 0")
            some.append(f"{start} < {space[axis]}")
        if crossing.anchored(axis) or past or space[axis] % crossing.side:
            whole.append(f"{start} <= {space[axis] - crossing.side - past}")  # no sum overflows
    with body.block(f"if ({' && '.join(whole)})" if whole else ""):
        _write_turn(body, nest, Tile(shape, space, cut=False))
    if whole:
        with body.block(f"else if ({' && '.join(some)})" if some else "else"):
            _write_turn(body, nest, Tile(shape, space, cut=True))


@dataclass(frozen=True, slots=True)
class Turn:
    """A tile that is loaded by words along one axis, and stored by words along another."""

    loads: tuple[Load, ...]
    loaded: Words
    stores: tuple[Store, ...]
    stored: Words
    shear: Skew | None

    @property
    def tile(self) -> Tile:
        """The tile."""
        return self.stored.tile

    def row(self, stored_place: str) -> str:
        """The row of the tiles that holds a run, as text.

        Runs that a thread stores as one word are as many rows apart as there are words in a run: so
        neighbouring threads read neighbouring rows, and meet all banks.
        """
        width = self.stored.width
        if width == 1:
            return stored_place
        apart = (self.tile.side + self.tile.crossing.overhang) // width
        place, shift = f"({stored_place})", width.bit_length() - 1
        return f"(({place} & {width - 1}) * {apart} + ({place} >> {shift}))"

    def row_of_part(self, first_row: str) -> str:
        """The row of the run of a word that is loaded, from that of the thread's first word on."""
        words, width = self.loaded, self.stored.width
        if words.anew or not words.apart or words.apart % width or words.period % width:
            return self.row("stored_place")
        row = f"{first_row} + turn * {words.apart // width}"
        if words.alike > 1:
            row = f"{row} + part % {words.alike} * {words.period // width}"
        return row

    def column(self, stored_place: str) -> str:
        """The column of the tiles, which begin as far behind a word as runs do in memory."""
        skew = self.loaded.skew
        if skew is None or self.loaded.width == 1:
            return "loaded_place"
        return f"loaded_place + {skew.within(self.loaded.width).of(stored_place)}"

    def element(self, number: int, stored_place: str) -> str:
        """An element of a load's tile, as text."""
        length = self.tile.crossing.row(self.loads[number])
        return f"tile{number}[{self.row(stored_place)} * {length} + {self.column(stored_place)}]"

    def bind_elements(self, body: Body, stored_place: str) -> None:
        """Let the loads stand for elements of their tiles."""
        for number, load in enumerate(self.loads):
            body.bind(load, self.element(number, stored_place))


def _write_turn(body: Body, nest: MapNest, tile: Tile) -> None:
    crossing, flat = tile.crossing, Flattener({})
    loads = [_flat_load(flat, load) for load in crossing.loads]
    stores = list(map(flat.store, nest.stores))
    largest, load = crossing.leaders
    store, load = stores[nest.stores.index(largest)], _flat_load(flat, load)
    load_width, store_width = word_widths(tile, crossing.loads, nest.stores)
    shear = declare_skew(body, tile, store, crossing.stored) if crossing.overhang else None
    skew = None
    if tile.cut:
        load_width, store_width = 1, 1
    elif crossing.skewed:
        skew = declare_skew(body, tile, load, crossing.loaded)
    turn = Turn(
        tuple(loads),
        declare_words(body, tile, load, crossing.loaded, load_width, skew),
        tuple(stores),
        declare_words(body, tile, store, crossing.stored, store_width, None if tile.cut else shear),
        shear,
    )
    _load_tile(body, turn)
    body.line("__syncthreads();")
    _store_tile(body, turn)


def _load_tile(body: Body, turn: Turn) -> None:
    """Load the tile a word a thread at a time, and many words before the first of them is kept."""
    words, tile = turn.loaded, turn.tile
    behind = None if words.skew is None else rim(words, words.skew)
    kept: list[str] = []
    if behind is not None:
        kept = _declare_words(body, turn, behind.parts(tile))
        with each_point(body, tile, behind, tile.inside()):
            _load_words(body, turn, kept)
    count = words.batch * words.alike
    first_row = body.fresh()
    body.line(f"const int {first_row} = {turn.row(words.run)};")
    body.line("#pragma unroll 1")
    with body.block(f"for (int begin = 0; begin < {words.turns}; begin += {words.batch})"):
        names = _declare_words(body, turn, count)
        with each_word(body, words, count, "begin", tile.inside()):
            _load_words(body, turn, names)
        # what lies outside is kept, too, and never used
        with each_word(body, words, count, "begin"):
            column = "loaded_place" if words.skew is None else "column"
            _keep_words(body, turn, names, turn.row_of_part(first_row), column)
    if behind is not None:
        with each_point(body, tile, behind):
            _keep_words(body, turn, kept, turn.row("stored_place"), turn.column("stored_place"))


def _declare_words(body: Body, turn: Turn, count: int) -> list[str]:
    names = [body.fresh() for _ in turn.loads]
    for load, name in zip(turn.loads, names, strict=True):
        body.line(f"{pack(load, turn.loaded.width)} {name}[{count}];")
    return names


def _load_words(body: Body, turn: Turn, names: list[str]) -> None:
    for load, name in zip(turn.loads, names, strict=True):
        _load_word(body, turn.loaded, load, f"{name}[part]")


def _keep_words(body: Body, turn: Turn, names: list[str], row: str, column: str) -> None:
    width = turn.loaded.width
    if turn.loaded.skew is not None:
        column = f"({column}) & {-width}"  # as it is, but only so a compiler knows
    for number, (load, name) in enumerate(zip(turn.loads, names, strict=True)):
        length = turn.tile.crossing.row(load)
        place = f"tile{number} + ({row}) * {length} + ({column})"
        body.line(f"*reinterpret_cast<{pack(load, width)}*>({place}) = {name}[part];")


def _load_word(body: Body, words: Words, load: Load, target: str) -> None:
    if words.width > 1:
        compute(body, load.indices)
        text = load_text(body, load, words.width, word_test(body, words, load))
        body.line(f"{target} = {text};")
    else:
        compute(body, [load])
        body.line(f"{target}.items[0] = {value(body, load)};")


def _store_tile(body: Body, turn: Turn) -> None:
    """Compute and store the tile, a word a thread at a time; if it is sheared, but for what belongs
    to the tile before.
    """
    words, tile, shear = turn.stored, turn.tile, turn.shear
    tests = tile.inside()
    head = "0" if shear is None else shear.head("loaded_place")
    if tile.cut and shear is not None:
        tests.append(f"stored_place >= (stored_start == 0 ? 0 : {head})")
    with each_word(body, words, words.parts, tests=tests):
        if words.width > 1:
            _store_word(body, turn)
        else:
            _store_point(body, turn)
    if shear is None:
        return
    if tile.cut:
        past = f"stored_place < {tile.side} + {head}"
        with each_point(body, tile, overhang(tile), [*tile.inside(), past]):
            _store_point(body, turn)
    else:
        count = tile.side * shear.width
        run, place = f"point / {shear.width}", f"point % {shear.width}"
        heads = Points(count, place, run, (f"stored_place < {head}",))
        with body.block("if (stored_start == 0)"), each_point(body, tile, heads):
            _store_point(body, turn)


def _store_point(body: Body, turn: Turn) -> None:
    turn.bind_elements(body, "stored_place")
    write_results(body, turn.stores, ())


def _store_word(body: Body, turn: Turn) -> None:
    words, width = turn.stored, turn.stored.width
    axis = axes_of(words.tile.space)[words.axis]
    results = declare_results(body, turn.stores, width)
    with body.unrolled(f"for (int item = 0; item < {width}; ++item)"):
        body.line(f"const {index_type(axis.extent + words.tile.side)} stored_item = stored + item;")
        body.bind(axis, "stored_item")
        turn.bind_elements(body, "(stored_place + item)")
        compute(body, stored(turn.stores))
        write_item(body, turn.stores, results)
    for store, name in results.items():
        compute(body, store.indices)
        body.line(store_line(body, store, width, name, word_test(body, words, store)))


def _place_tile(body: Body, space: tuple[int, ...], shape: TileShape) -> None:
    """Declare where the block's tile begins along both axes, and its place along the others."""
    crossing, side = shape.crossing, shape.crossing.side
    divisor = 1
    for number, start in ((crossing.stored, "stored_start"), (crossing.loaded, "loaded_start")):
        kind, count = index_type(space[number] + side), crossing.tiles(number, space)
        first = f"{kind}(block / {divisor} % {count}) * {side}"
        if crossing.anchored(number):
            leader = crossing.leader(number)
            address = f"tg_u64({body.pointers[leader.buffer]} + {crossing.offset(number)})"
            size, sector = leader.buffer.type.dtype.itemsize, crossing.sector(number)
            first += f" - int({address} / {size} & {sector - 1})"
        body.line(f"const {kind} {start} = {first};")
        divisor *= count
    for axis in reversed(axes_of(space)):
        if axis.number in (crossing.stored, crossing.loaded):
            continue
        name = body.fresh()
        body.line(f"const int {name} = block / {divisor} % {max(axis.extent, 1)};")
        body.bind(axis, name)
        divisor *= axis.extent


def _flat_load(flat: Flattener, load: Load) -> Load:
    result = flat(load)
    assert isinstance(result, Load)
    return result
