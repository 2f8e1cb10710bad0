"""The text of a map that transposes: tiles are kept in shared memory.

So both loads and stores are coalesced.
"""

from __future__ import annotations

from lowering.codegen.effects.signals import write_results
from lowering.codegen.expressions import compute, index_type, stored, value
from lowering.codegen.flatten import Flattener
from lowering.codegen.geometry_records import TileGeometry
from lowering.codegen.maps.stores import declare_results, write_item
from lowering.codegen.maps.tile_accesses import (
    Misalignment,
    Points,
    Tile,
    TileWords,
    declare_misalignment,
    declare_words,
    each_point,
    each_word,
    epilogue_points,
    halo_points,
    word_test,
    word_widths,
)
from lowering.codegen.maps.transpose_tiles import axes_of
from lowering.codegen.maps.vector_accesses import load_text, pack, store_line
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import MapNest, Store
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar_values import Load


def write_tiles(writer: SourceWriter, nest: MapNest, geometry: TileGeometry) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    transpose, space = geometry.transpose, nest.space
    _place_tile(writer, space, geometry)
    for number, load in enumerate(transpose.loads):
        kind, offset = c_type(load.dtype), transpose.offsets()[number]
        writer.line(f"{kind}* const tile{number} = reinterpret_cast<{kind}*>(shared + {offset});")
    whole, some = [], []
    for axis, past in ((transpose.stored, transpose.halo), (transpose.loaded, 0)):
        start = f"{Tile(geometry, space, partial=False).name(axis)}_start"
        if transpose.anchored(axis):
            whole.append(f"{start} >= 0")
            some.append(f"{start} < {space[axis]}")
        if transpose.anchored(axis) or past or space[axis] % transpose.side:
            whole.append(f"{start} <= {space[axis] - transpose.side - past}")  # no sum overflows
    with writer.block(f"if ({' && '.join(whole)})" if whole else ""):
        _write_tile(writer, nest, Tile(geometry, space, partial=False))
    if whole:
        with writer.block(f"else if ({' && '.join(some)})" if some else "else"):
            _write_tile(writer, nest, Tile(geometry, space, partial=True))


@dataclass(frozen=True, slots=True)
class SharedTile:
    """A tile that is loaded by words along one axis, and stored by words along another.

    `sector_alignment` is the misalignment of the stored runs, if the tile is sector-aligned.
    """

    loads: tuple[Load, ...]
    loaded: TileWords
    stores: tuple[Store, ...]
    stored: TileWords
    sector_alignment: Misalignment | None

    @property
    def tile(self) -> Tile:
        """The tile."""
        return self.stored.tile

    def row(self, stored_place: str) -> str:
        """The text of the tile row that holds a run.

        Rows are permuted: the runs of one stored word are as many rows apart as a run has words. So
        neighbouring threads read neighbouring rows, without bank conflicts.
        """
        width = self.stored.width
        if width == 1:
            return stored_place
        distance = (self.tile.side + self.tile.transpose.halo) // width
        place, shift = f"({stored_place})", width.bit_length() - 1
        return f"(({place} & {width - 1}) * {distance} + ({place} >> {shift}))"

    def row_of_part(self, first_row: str) -> str:
        """The text of a loaded word's row, computed from the row of the thread's first word."""
        words, width = self.loaded, self.stored.width
        if (
            words.recomputes_places
            or not words.run_step
            or words.run_step % width
            or words.period % width
        ):
            return self.row("stored_place")
        row = f"{first_row} + round * {words.run_step // width}"
        if words.words_per_round > 1:
            row = f"{row} + part % {words.words_per_round} * {words.period // width}"
        return row

    def column(self, stored_place: str) -> str:
        """The text of a column. Tile rows have the misalignment of runs in memory."""
        misalignment = self.loaded.misalignment
        if misalignment is None or self.loaded.width == 1:
            return "loaded_place"
        return f"loaded_place + {misalignment.within(self.loaded.width).of(stored_place)}"

    def element(self, number: int, stored_place: str) -> str:
        """The text of an element of a load's tile."""
        length = self.tile.transpose.row(self.loads[number])
        return f"tile{number}[{self.row(stored_place)} * {length} + {self.column(stored_place)}]"

    def bind_elements(self, writer: SourceWriter, stored_place: str) -> None:
        """Bind the loads to elements of their tiles."""
        for number, load in enumerate(self.loads):
            writer.bind(load, self.element(number, stored_place))


def _write_tile(writer: SourceWriter, nest: MapNest, tile: Tile) -> None:
    transpose, flat = tile.transpose, Flattener({})
    loads = [_flat_load(flat, load) for load in transpose.loads]
    stores = list(map(flat.store, nest.stores))
    largest, load = transpose.leaders
    store, load = stores[nest.stores.index(largest)], _flat_load(flat, load)
    load_width, store_width = word_widths(tile, transpose.loads, nest.stores)
    sector_alignment = (
        declare_misalignment(writer, tile, store, transpose.stored) if transpose.halo else None
    )
    misalignment = None
    if tile.partial:
        load_width, store_width = 1, 1
    elif transpose.misaligned:
        misalignment = declare_misalignment(writer, tile, load, transpose.loaded)
    shared = SharedTile(
        tuple(loads),
        declare_words(writer, tile, load, transpose.loaded, load_width, misalignment),
        tuple(stores),
        declare_words(
            writer,
            tile,
            store,
            transpose.stored,
            store_width,
            None if tile.partial else sector_alignment,
        ),
        sector_alignment,
    )
    _load_tile(writer, shared)
    writer.line("__syncthreads();")
    _store_tile(writer, shared)


def _load_tile(writer: SourceWriter, shared: SharedTile) -> None:
    """Load the tile by words. A thread loads many words before it writes the first to shared
    memory.
    """
    words, tile = shared.loaded, shared.tile
    epilogue = None if words.misalignment is None else epilogue_points(words, words.misalignment)
    kept: list[str] = []
    if epilogue is not None:
        kept = _declare_words(writer, shared, epilogue.parts(tile))
        with each_point(writer, tile, epilogue, tile.bounds_tests()):
            _load_words(writer, shared, kept)
    count = words.batch * words.words_per_round
    first_row = writer.fresh()
    writer.line(f"const int {first_row} = {shared.row(words.run)};")
    writer.line("#pragma unroll 1")
    with writer.block(f"for (int begin = 0; begin < {words.rounds}; begin += {words.batch})"):
        names = _declare_words(writer, shared, count)
        with each_word(writer, words, count, "begin", tile.bounds_tests()):
            _load_words(writer, shared, names)
        # words outside the space are written without a test, and never used
        with each_word(writer, words, count, "begin"):
            column = "loaded_place" if words.misalignment is None else "column"
            _write_shared_words(writer, shared, names, shared.row_of_part(first_row), column)
    if epilogue is not None:
        with each_point(writer, tile, epilogue):
            _write_shared_words(
                writer, shared, kept, shared.row("stored_place"), shared.column("stored_place")
            )


def _declare_words(writer: SourceWriter, shared: SharedTile, count: int) -> list[str]:
    names = [writer.fresh() for _ in shared.loads]
    for load, name in zip(shared.loads, names, strict=True):
        writer.line(f"{pack(load, shared.loaded.width)} {name}[{count}];")
    return names


def _load_words(writer: SourceWriter, shared: SharedTile, names: list[str]) -> None:
    for load, name in zip(shared.loads, names, strict=True):
        _load_word(writer, shared.loaded, load, f"{name}[part]")


def _write_shared_words(
    writer: SourceWriter, shared: SharedTile, names: list[str], row: str, column: str
) -> None:
    width = shared.loaded.width
    if shared.loaded.misalignment is not None:
        column = f"({column}) & {-width}"  # already a multiple, but the compiler cannot know
    for number, (load, name) in enumerate(zip(shared.loads, names, strict=True)):
        length = shared.tile.transpose.row(load)
        place = f"tile{number} + ({row}) * {length} + ({column})"
        writer.line(f"*reinterpret_cast<{pack(load, width)}*>({place}) = {name}[part];")


def _load_word(writer: SourceWriter, words: TileWords, load: Load, target: str) -> None:
    if words.width > 1:
        compute(writer, load.indices)
        text = load_text(writer, load, words.width, word_test(writer, words, load))
        writer.line(f"{target} = {text};")
    else:
        compute(writer, [load])
        writer.line(f"{target}.items[0] = {value(writer, load)};")


def _store_tile(writer: SourceWriter, shared: SharedTile) -> None:
    """Compute and store the tile by words. A sector-aligned tile stores its halo, and not the
    points that belong to the tile before it.
    """
    words, tile, sector_alignment = shared.stored, shared.tile, shared.sector_alignment
    tests = tile.bounds_tests()
    head = "0" if sector_alignment is None else sector_alignment.head("loaded_place")
    if tile.partial and sector_alignment is not None:
        tests.append(f"stored_place >= (stored_start == 0 ? 0 : {head})")
    with each_word(writer, words, words.parts, tests=tests):
        if words.width > 1:
            _store_word(writer, shared)
        else:
            _store_point(writer, shared)
    if sector_alignment is None:
        return
    if tile.partial:
        past = f"stored_place < {tile.side} + {head}"
        with each_point(writer, tile, halo_points(tile), [*tile.bounds_tests(), past]):
            _store_point(writer, shared)
    else:
        count = tile.side * sector_alignment.width
        run, place = f"point / {sector_alignment.width}", f"point % {sector_alignment.width}"
        heads = Points(count, place, run, (f"stored_place < {head}",))
        with writer.block("if (stored_start == 0)"), each_point(writer, tile, heads):
            _store_point(writer, shared)


def _store_point(writer: SourceWriter, shared: SharedTile) -> None:
    shared.bind_elements(writer, "stored_place")
    write_results(writer, shared.stores, ())


def _store_word(writer: SourceWriter, shared: SharedTile) -> None:
    words, width = shared.stored, shared.stored.width
    axis = axes_of(words.tile.space)[words.axis]
    results = declare_results(writer, shared.stores, width)
    with writer.unrolled(f"for (int item = 0; item < {width}; ++item)"):
        writer.line(
            f"const {index_type(axis.extent + words.tile.side)} stored_item = stored + item;"
        )
        writer.bind(axis, "stored_item")
        shared.bind_elements(writer, "(stored_place + item)")
        compute(writer, stored(shared.stores))
        write_item(writer, shared.stores, results)
    for store, name in results.items():
        compute(writer, store.indices)
        writer.line(store_line(writer, store, width, name, word_test(writer, words, store)))


def _place_tile(writer: SourceWriter, space: tuple[int, ...], geometry: TileGeometry) -> None:
    """Declare the begin of the block's tile along both axes, and its indices along the others."""
    transpose, side = geometry.transpose, geometry.transpose.side
    divisor = 1
    for number, start in ((transpose.stored, "stored_start"), (transpose.loaded, "loaded_start")):
        kind, count = index_type(space[number] + side), transpose.tiles(number, space)
        first = f"{kind}(block / {divisor} % {count}) * {side}"
        if transpose.anchored(number):
            leader = transpose.leader(number)
            address = f"tg_u64({writer.pointers[leader.buffer]} + {transpose.offset(number)})"
            size, sector = leader.buffer.type.dtype.itemsize, transpose.sector(number)
            first += f" - int({address} / {size} & {sector - 1})"
        writer.line(f"const {kind} {start} = {first};")
        divisor *= count
    for axis in reversed(axes_of(space)):
        if axis.number in (transpose.stored, transpose.loaded):
            continue
        name = writer.fresh()
        writer.line(f"const int {name} = block / {divisor} % {max(axis.extent, 1)};")
        writer.bind(axis, name)
        divisor *= axis.extent


def _flat_load(flat: Flattener, load: Load) -> Load:
    result = flat(load)
    assert isinstance(result, Load)
    return result
