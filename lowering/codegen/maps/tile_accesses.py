"""Accesses of a tile by words: misalignment, epilogue and halo.

A run is the points of a tile that are contiguous in memory. Runs may be misaligned, each by another
distance; their words are aligned in memory all the same.

Misaligned stores use sector-aligned tiles: each stored run begins with a sector and ends where the
run of the next tile begins. That takes a halo, up to a sector of further points to load, which
costs less than writing parts of sectors. A load must have the whole run: it starts at the enclosing
sector, and the words that it misses at the end are loaded separately, as an epilogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lowering.codegen.expressions import compute, index, index_type
from lowering.codegen.geometry_records import TileGeometry
from lowering.codegen.maps.transpose_tiles import Transpose, axes_of, begins_aligned, word_of
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Store
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.target.hardware import WORD_BYTES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import affine
from tracegraph.ir.scalar_values import Load

WORDS_IN_FLIGHT = 16
"""Words that a thread loads before it writes the first to shared memory, or stores in one
iteration: a register for each, beside what a thread of eight resident blocks computes with."""

MISALIGNED_IN_FLIGHT = 36
"""The same for loads of misaligned runs: all words of a tile, see BYTES_IN_FLIGHT."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a space. A `partial` one may extend beyond the space."""

    geometry: TileGeometry
    space: tuple[int, ...]
    partial: bool

    @property
    def transpose(self) -> Transpose:
        """The transpose that the tile makes."""
        return self.geometry.transpose

    @property
    def side(self) -> int:
        """Points along each of both axes."""
        return self.geometry.transpose.side

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.geometry.threads

    @property
    def unanchored(self) -> bool:
        """Whether the alignment of runs differs along both axes."""
        transpose = self.transpose
        return not (transpose.anchored(transpose.stored) or transpose.anchored(transpose.loaded))

    def name(self, axis: int) -> str:
        """The prefix of the variables of an axis."""
        return "stored" if axis == self.transpose.stored else "loaded"

    def bounds_tests(self) -> list[str]:
        """The tests that a point is inside the space."""
        tests = []
        for axis in (self.transpose.stored, self.transpose.loaded) if self.partial else ():
            if self.transpose.anchored(axis):
                tests.append(f"{self.name(axis)} >= 0")
            tests.append(f"{self.name(axis)} < {self.space[axis]}")
        return tests


@dataclass(frozen=True, slots=True)
class Misalignment:
    """The distances, in points, from a boundary of `width` points to the begin of a tile's runs.

    That of run n is (`first` + n * `step`) modulo `width`.
    """

    first: str
    step: int
    width: int

    def of(self, run: str) -> str:
        """The text of a run's misalignment."""
        if self.step == 0:
            return f"({self.first} & {self.width - 1})"
        return f"({self.first} + ({run}) * {self.step} & {self.width - 1})"

    def head(self, run: str) -> str:
        """The text of how many points of a run come before its first boundary."""
        return f"(-{self.of(run)} & {self.width - 1})"

    def within(self, width: int) -> Misalignment:
        """The misalignment with respect to boundaries of `width` points."""
        return Misalignment(self.first, self.step % width, width)


def declare_misalignment(
    writer: SourceWriter, tile: Tile, leader: Load | Store, axis: int
) -> Misalignment:
    """Declare the misalignment of a flat access's runs along an axis, with respect to sectors."""
    transpose = tile.transpose
    name, sector = writer.fresh(), transpose.sector(axis)
    with writer.scope():
        for number in (transpose.stored, transpose.loaded):
            writer.bind(axes_of(tile.space)[number], f"{tile.name(number)}_start")
        compute(writer, leader.indices)
        place = f"{writer.pointers[leader.buffer]} + {index(writer, leader.indices[0])}"
    size = leader.buffer.type.dtype.itemsize
    writer.line(f"const int {name} = int(tg_u64({place}) / {size} & {sector - 1});")
    other = transpose.loaded if axis == transpose.stored else transpose.stored
    strides, _ = affine(leader.indices[0]) or ({}, 0)
    return Misalignment(name, strides.get(other, 0) % sector, sector)


@dataclass(frozen=True, slots=True)
class TileWords:
    """The words of `width` points in `runs` runs along an axis. Neighbouring threads access
    neighbouring words.

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
        """Words of a thread, rounded up."""
        return ceil_div(self.runs * self.tile.side, self.tile.threads * self.width)

    @property
    def run_step(self) -> int:
        """Runs from one word of a thread to its next; 0 if both are in the same run."""
        return self.tile.threads * self.width // self.tile.side

    @property
    def words_per_round(self) -> int:
        """Words of a thread in a round: those of runs with the same misalignment, whose places are
        computed once; 1 if all runs of the thread have the same.
        """
        if not 0 < self.run_step < self.period:
            return 1
        whole = self.period % self.run_step == 0 and self.runs % self.period == 0
        return self.runs // self.period if whole else 1

    @property
    def period(self) -> int:
        """Runs after which misalignments repeat; 0 if there are none."""
        return 0 if self.misalignment is None else self.misalignment.width

    @property
    def rounds(self) -> int:
        """Rounds in which a thread accesses its words."""
        return self.parts // self.words_per_round

    @property
    def exact(self) -> bool:
        """Whether all threads have the same number of words."""
        return self.runs * self.tile.side % (self.tile.threads * self.width) == 0

    @property
    def recomputes_places(self) -> bool:
        """Whether the place of each word is recomputed, although it could be computed once.

        That takes more instructions and 48 registers instead of 31. So five blocks are resident
        instead of eight, and their misaligned loads compete for fewer cache lines: float32
        transposes reach 88 % of a copy instead of 71 (H200).
        """
        size = self.leader.buffer.type.dtype.itemsize
        return (
            self.tile.unanchored and self.misalignment is None and size >= WORD_BYTES and self.exact
        )

    @property
    def batch(self) -> int:
        """Rounds whose words a thread loads before it writes the first to shared memory."""
        most = WORDS_IN_FLIGHT if self.misalignment is None else MISALIGNED_IN_FLIGHT
        return _divisor(self.rounds, most // self.words_per_round)

    def declare_place(self, writer: SourceWriter, begin: str) -> tuple[str, str]:
        """The place in its run, and the run, of word number `part` from round `begin` on.

        Declares `round`, its `first` run and, for loads of misaligned runs, the `column` of the
        word in the tile.
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
        # a thread whose word is before the tile loads the first word again, instead of branching
        word = f"{column} / {self.width} - {self.misalignment.of('first')} / {self.width}"
        writer.line(f"const int word = {word}, column = (word > 0 ? word : 0) * {self.width};")
        return f"column - {self.misalignment.within(self.width).of('first')}", run

    def tests(self) -> list[str]:
        """The tests that the word exists."""
        run = "stored_place" if self.axis == self.tile.transpose.loaded else "loaded_place"
        return [] if self.exact else [f"{run} < {self.runs}"]


def word_widths(tile: Tile, loads: Iterable[Load], stores: Iterable[Store]) -> tuple[int, int]:
    """The widths, in points, of the words in which a whole tile is loaded and stored.

    All words of a thread must have the same place within their runs.
    """
    transpose = tile.transpose
    widths = word_of(loads, transpose.loaded), word_of(stores, transpose.stored)
    run_steps = [tile.threads * width // tile.side for width in widths]
    if not all(step and step % max(widths) == 0 for step in run_steps):
        return 1, 1
    leader, width = transpose.leader(transpose.loaded), widths[0]
    aligned = transpose.anchored(transpose.loaded) or begins_aligned(
        leader, transpose.loaded, width
    )
    return (width if aligned or transpose.misaligned else 1), widths[1]


def declare_words(
    writer: SourceWriter,
    tile: Tile,
    leader: Load | Store,
    axis: int,
    width: int,
    misalignment: Misalignment | None,
) -> TileWords:
    """Declare the run and column of a thread's first word."""
    column, run = writer.fresh(), writer.fresh()
    per_run = tile.side // width
    writer.line(f"const int {column} = thread % {per_run} * {width}, {run} = thread / {per_run};")
    runs = tile.side + (tile.transpose.halo if axis == tile.transpose.loaded else 0)
    return TileWords(tile, leader, axis, width, misalignment, runs, column, run)


def word_test(writer: SourceWriter, words: TileWords, access: Load | Store) -> dict[Buffer, str]:
    """The test, by buffer, that a word at a computed place is aligned; empty if all are."""
    shifted = words.misalignment is not None or words.tile.transpose.anchored(words.axis)
    aligned = not shifted and begins_aligned(access, words.axis, words.width)
    if access is words.leader or aligned:
        return {}
    nbytes = access.buffer.type.dtype.itemsize * words.width
    place = f"{writer.pointers[access.buffer]} + {index(writer, access.indices[0])}"
    return {access.buffer: f"(tg_u64({place}) & {nbytes - 1}) == 0"}


@contextmanager
def each_word(
    writer: SourceWriter, words: TileWords, parts: int, begin: str = "0", tests: Iterable[str] = ()
) -> Iterator[None]:
    """Write a loop over each `part` of a thread's words that passes the tests. Both axes are bound
    to the begin of the word.
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
    """At most `count` single points of a tile: the texts of the places of number `point` along both
    axes, and the tests that it exists.
    """

    count: int
    stored_place: str
    loaded_place: str
    tests: tuple[str, ...]

    def parts(self, tile: Tile) -> int:
        """Points of a thread, rounded up."""
        return ceil_div(self.count, tile.threads)


def epilogue_points(words: TileWords, misalignment: Misalignment) -> Points:
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
    """The halo of a sector-aligned tile: points beyond its side that some of its runs store.
    Neighbouring points are neighbours along the loaded axis.
    """
    side = tile.side
    count = tile.transpose.halo * side
    return Points(count, f"{side} + point / {side}", f"point % {side}", ())


@contextmanager
def each_point(
    writer: SourceWriter, tile: Tile, points: Points, tests: Iterable[str] = ()
) -> Iterator[None]:
    """Write a loop over each `part` of a thread's points that passes the tests, with both axes
    bound.
    """
    with writer.unrolled(f"for (int part = 0; part < {points.parts(tile)}; ++part)"):
        writer.line(f"const int point = part * {tile.threads} + thread;")
        _bind_point(writer, tile, points.stored_place, points.loaded_place)
        exists = [f"point < {points.count}"] if points.count % tile.threads else []
        with _test(writer, (*exists, *points.tests, *tests)):
            yield


def _bind_point(writer: SourceWriter, tile: Tile, stored_place: str, loaded_place: str) -> None:
    """Declare the place of a point in the tile, and bind the axes to its indices in the space."""
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
    """The greatest divisor that is at most `most`; 1 if there is none.

    >>> _divisor(32, 18), _divisor(36, 18)
    (16, 18)
    """
    return max((n for n in range(1, most + 1) if number % n == 0), default=1)
