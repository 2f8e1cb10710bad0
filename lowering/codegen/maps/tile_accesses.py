"""Words of a tile: what each thread of a block loads, or stores, as one.

A run is the points of a tile that follow each other in memory. Where runs begin off alignment, each
perhaps by another distance, their words begin where memory's do.

Where stores are off alignment, tiles are sheared: each run that is stored begins with a sector, and
ends where that of the next tile begins. To write a part of a sector costs more than to load a tile
that is larger by one. Loads must have all of a run: they begin with the sector that it begins in,
and what they miss at its end is its rim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lowering.codegen.expressions import compute, index, index_type
from lowering.codegen.geometry_records import TileGeometry
from lowering.codegen.maps.transpose_tiles import WORD, Transpose, axes_of, begins_aligned, word_of
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Store
from lowering.plan.rounding import ceil_div
from tracegraph.ir.scalar import Load, affine

WORDS_IN_FLIGHT = 16
"""Words that a thread loads before it keeps the first, or stores in one round of a loop."""

MISALIGNED_IN_FLIGHT = 36
"""The same of loads in misaligned runs: all of a tile's."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a space. If it is `partial`, a part of it may lie outside."""

    geometry: TileGeometry
    space: tuple[int, ...]
    partial: bool

    @property
    def transpose(self) -> Transpose:
        """What crosses."""
        return self.geometry.transpose

    @property
    def side(self) -> int:
        """The points along both axes."""
        return self.geometry.transpose.side

    @property
    def threads(self) -> int:
        """The threads of the block."""
        return self.geometry.threads

    @property
    def unanchored(self) -> bool:
        """Whether the runs of neither axis begin alike in sectors."""
        transpose = self.transpose
        return not (transpose.anchored(transpose.stored) or transpose.anchored(transpose.loaded))

    def name(self, axis: int) -> str:
        """What the variables along an axis are called."""
        return "stored" if axis == self.transpose.stored else "loaded"

    def bounds_tests(self) -> list[str]:
        """The tests that a point is inside of the space."""
        tests = []
        for axis in (self.transpose.stored, self.transpose.loaded) if self.partial else ():
            if self.transpose.anchored(axis):
                tests.append(f"{self.name(axis)} >= 0")
            tests.append(f"{self.name(axis)} < {self.space[axis]}")
        return tests


@dataclass(frozen=True, slots=True)
class Misalignment:
    """How far behind a sector's begin the runs of a tile begin: the first by `first` points, each
    other by `step` more than the one before it, modulo `width`.
    """

    first: str
    step: int
    width: int

    def of(self, run: str) -> str:
        """The misalignment of a run, as text."""
        if self.step == 0:
            return f"({self.first} & {self.width - 1})"
        return f"({self.first} + ({run}) * {self.step} & {self.width - 1})"

    def head(self, run: str) -> str:
        """The points of a run before its first sector, as text."""
        return f"(-{self.of(run)} & {self.width - 1})"

    def within(self, width: int) -> Misalignment:
        """How far behind words of a width the runs begin."""
        return Misalignment(self.first, self.step % width, width)


def declare_misalignment(
    writer: SourceWriter, tile: Tile, leader: Load | Store, axis: int
) -> Misalignment:
    """The misalignment, in sectors, of a flat access's runs along an axis."""
    transpose = tile.transpose
    name, sector = writer.fresh(), transpose.sector(axis)
    with writer.scope():
        for number in (transpose.stored, transpose.loaded):
            writer.bind(axes_of(tile.space)[number], f"{tile.name(number)}_start")
        compute(writer, leader.indices)
        place = f"{writer.pointers[leader.buffer]} + {index(writer, leader.indices[0])}"
    size = leader.buffer.type.dtype.itemsize
    writer.line(f"const int {name} = int(tg_u64({place}) / {size} & {sector - 1});")
    across = transpose.loaded if axis == transpose.stored else transpose.stored
    strides, _ = affine(leader.indices[0]) or ({}, 0)
    return Misalignment(name, strides.get(across, 0) % sector, sector)


@dataclass(frozen=True, slots=True)
class Words:
    """Words of `width` points in as many `runs` along an axis; neighbouring threads take
    neighbouring ones.

    Those of one access, the `leader`, are aligned. With a misalignment, the first word of a run
    begins at a sector: before the tile for loads, inside it for stores. `run` and `column` name the
    variables that hold the run of a thread's first word and its place there.
    """

    tile: Tile
    leader: Load | Store
    axis: int
    width: int
    misalignment: Misalignment | None
    runs: int
    column: str
    run: str

    @property
    def parts(self) -> int:
        """How many words a thread takes, or some threads do."""
        return ceil_div(self.runs * self.tile.side, self.tile.threads * self.width)

    @property
    def run_step(self) -> int:
        """How many runs lie from one turn of a thread to its next; 0 if not even one."""
        return self.tile.threads * self.width // self.tile.side

    @property
    def words_per_round(self) -> int:
        """How many words a thread takes in a turn: those of all runs that begin as the first one
        does in a sector, so that their places are computed once; 1 if all of the thread's do.
        """
        if not 0 < self.run_step < self.period:
            return 1
        whole = self.period % self.run_step == 0 and self.runs % self.period == 0
        return self.runs // self.period if whole else 1

    @property
    def period(self) -> int:
        """How many runs lie from one to the next that begins alike in a sector."""
        return 0 if self.misalignment is None else self.misalignment.width

    @property
    def rounds(self) -> int:
        """How many times a thread takes words that are alike."""
        return self.parts // self.words_per_round

    @property
    def exact(self) -> bool:
        """Whether all threads take as many words."""
        return self.runs * self.tile.side % (self.tile.threads * self.width) == 0

    @property
    def recomputes_places(self) -> bool:
        """Whether the place of each word is computed anew, where points are words and runs begin
        anywhere in a sector, but words do not.

        That takes more instructions and registers, so that fewer blocks run at a time and loads
        come apart: on an H200, float32 then moves 84 % of what a copy moves, and else 71 %.
        """
        size = self.leader.buffer.type.dtype.itemsize
        return self.tile.unanchored and self.misalignment is None and size >= WORD and self.exact

    @property
    def batch(self) -> int:
        """How many turns' words a thread loads before it keeps the first."""
        most = WORDS_IN_FLIGHT if self.misalignment is None else MISALIGNED_IN_FLIGHT
        return _divisor(self.rounds, most // self.words_per_round)

    def declare_place(self, writer: SourceWriter, begin: str) -> tuple[str, str]:
        """The place in its run, and the run, of word number `part` from the turn `begin` on.

        Declares `turn`; its `first` run, which begins in a sector as all of the turn do; and the
        word's `column` in a tile, if it is loaded and runs are misaligned.
        """
        tile = self.tile
        writer.line(f"const int round = {begin} + part / {self.words_per_round};")
        if self.recomputes_places:
            number = f"(round * {tile.threads} + thread)"
            return f"{number} % {tile.side}", f"{number} / {tile.side}"
        column, first = self.column, f"{self.run} + round * {self.run_step}"
        if self.run_step == 0:
            each = tile.side // tile.threads
            column, first = f"{column} + round % {each} * {tile.threads}", f"round / {each}"
        writer.line(f"const int first = {first};")
        run = (
            f"first + part % {self.words_per_round} * {self.period}"
            if self.words_per_round > 1
            else "first"
        )
        if self.misalignment is None:
            return column, run
        if self.axis == tile.transpose.stored:
            return f"{column} + {self.misalignment.head('first')}", run
        # who would load what lies before the tile loads the first word: branches cost more
        word = f"{column} / {self.width} - {self.misalignment.of('first')} / {self.width}"
        writer.line(f"const int word = {word}, column = (word > 0 ? word : 0) * {self.width};")
        return f"column - {self.misalignment.within(self.width).of('first')}", run

    def tests(self) -> list[str]:
        """The tests that there is a word."""
        run = "stored_place" if self.axis == self.tile.transpose.loaded else "loaded_place"
        return [] if self.exact else [f"{run} < {self.runs}"]


def word_widths(tile: Tile, loads: Iterable[Load], stores: Iterable[Store]) -> tuple[int, int]:
    """The points of the words by which loads and stores of a whole tile are made.

    All words of a thread are to begin at the same place of a word as their runs do.
    """
    transpose = tile.transpose
    widths = word_of(loads, transpose.loaded), word_of(stores, transpose.stored)
    apart = [tile.threads * width // tile.side for width in widths]
    if not all(number and number % max(widths) == 0 for number in apart):
        return 1, 1
    leader, width = transpose.leader(transpose.loaded), widths[0]
    straight = transpose.anchored(transpose.loaded) or begins_aligned(
        leader, transpose.loaded, width
    )
    return (width if straight or transpose.misaligned else 1), widths[1]


def declare_words(
    writer: SourceWriter,
    tile: Tile,
    leader: Load | Store,
    axis: int,
    width: int,
    misalignment: Misalignment | None,
) -> Words:
    """Declare where the words of a thread begin."""
    column, run = writer.fresh(), writer.fresh()
    per_run = tile.side // width
    writer.line(f"const int {column} = thread % {per_run} * {width}, {run} = thread / {per_run};")
    runs = tile.side + (tile.transpose.halo if axis == tile.transpose.loaded else 0)
    return Words(tile, leader, axis, width, misalignment, runs, column, run)


def word_test(writer: SourceWriter, words: Words, access: Load | Store) -> dict[Buffer, str]:
    """The test that a word at a computed place is aligned, by its buffer; none if all are."""
    shifted = words.misalignment is not None or words.tile.transpose.anchored(words.axis)
    aligned = not shifted and begins_aligned(access, words.axis, words.width)
    if access is words.leader or aligned:
        return {}
    nbytes = access.buffer.type.dtype.itemsize * words.width
    place = f"{writer.pointers[access.buffer]} + {index(writer, access.indices[0])}"
    return {access.buffer: f"(tg_u64({place}) & {nbytes - 1}) == 0"}


@contextmanager
def each_word(
    writer: SourceWriter, words: Words, parts: int, begin: str = "0", tests: Iterable[str] = ()
) -> Iterator[None]:
    """Text that runs for each `part` of a thread's words that passes the tests, with both axes
    bound to where it begins.
    """
    tile = words.tile
    most = WORDS_IN_FLIGHT if words.axis == tile.transpose.stored else parts
    writer.line(f"#pragma unroll {_divisor(parts, most)}")
    with writer.block(f"for (int part = 0; part < {parts}; ++part)"):
        place, run = words.declare_place(writer, begin)
        along_stored = words.axis == tile.transpose.stored
        _bind_point(writer, tile, *((place, run) if along_stored else (run, place)))
        with _test(writer, [*words.tests(), *tests]):
            yield


@dataclass(frozen=True, slots=True)
class Points:
    """Single points of a tile, `count` at most: where number `point` lies, and the tests that there
    is one, as text.
    """

    count: int
    stored_place: str
    loaded_place: str
    tests: tuple[str, ...]

    def parts(self, tile: Tile) -> int:
        """How many a thread takes."""
        return ceil_div(self.count, tile.threads)


def epilogue_points(words: Words, misalignment: Misalignment) -> Points:
    """The epilogue: the last words of misaligned runs, as many as may begin before the tile. Where
    fewer do, the last word is loaded more than once.
    """
    side, width = words.tile.side, words.width
    count = misalignment.width // width
    run = f"point / {count}"
    within = misalignment.within(width).of(run)
    word = f"{side // width} + point % {count} - {misalignment.of(run)} / {width}"
    last = f"({side - 1} + {within}) / {width}"
    place = f"({word} < {last} ? {word} : {last}) * {width} - {within}"
    return Points(words.runs * count, run, place, ())


def halo_points(tile: Tile) -> Points:
    """The points past the side of a tile that some of its sheared runs have; neighbours follow each
    other along the loaded axis.
    """
    side = tile.side
    count = tile.transpose.halo * side
    return Points(count, f"{side} + point / {side}", f"point % {side}", ())


@contextmanager
def each_point(
    writer: SourceWriter, tile: Tile, points: Points, tests: Iterable[str] = ()
) -> Iterator[None]:
    """Text that runs for each `part` of a thread's points that passes the tests, with both axes
    bound.
    """
    with writer.unrolled(f"for (int part = 0; part < {points.parts(tile)}; ++part)"):
        writer.line(f"const int point = part * {tile.threads} + thread;")
        _bind_point(writer, tile, points.stored_place, points.loaded_place)
        exists = [f"point < {points.count}"] if points.count % tile.threads else []
        with _test(writer, (*exists, *points.tests, *tests)):
            yield


def _bind_point(writer: SourceWriter, tile: Tile, stored_place: str, loaded_place: str) -> None:
    """Declare the place of a point in the tile, and bind the axes to where it is in the space."""
    transpose = tile.transpose
    for axis, place in ((transpose.stored, stored_place), (transpose.loaded, loaded_place)):
        name = tile.name(axis)
        kind = index_type(tile.space[axis] + tile.side + transpose.halo)
        writer.line(f"const int {name}_place = {place};")
        writer.line(f"const {kind} {name} = {name}_start + {name}_place;")
        writer.bind(axes_of(tile.space)[axis], name)


@contextmanager
def _test(writer: SourceWriter, tests: Iterable[str]) -> Iterator[None]:
    text = " && ".join(tests)
    with writer.block(f"if ({text})") if text else writer.scope():
        yield


def _divisor(number: int, most: int) -> int:
    """The greatest divisor that is `most` at most; 1 if there is none.

    >>> _divisor(32, 18), _divisor(36, 18)
    (16, 18)
    """
    return max((n for n in range(1, most + 1) if number % n == 0), default=1)
