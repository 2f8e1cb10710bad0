"""Words of a tile: what each thread of a block loads, or stores, as one.

A run is the points of a tile that follow each other in memory. Where runs begin off alignment, each
perhaps by another distance, their words begin where memory's do.

Where stores are off alignment, tiles are sheared: each run that is stored begins with a word, and
ends where that of the next tile begins. Loads must have all of a run: the points before the first
and after the last of its words make up one word together; they are its rim, and are loaded one by
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lowering.buffer import Buffer
from lowering.codegen.body import Body
from lowering.codegen.crossings import WORD, Crossing, axes_of, begins_aligned, word_of
from lowering.codegen.expressions import compute, index, index_type
from lowering.codegen.shapes import TileShape
from lowering.kernel import Store
from lowering.rounding import ceil_div
from tracegraph.scalar import Load, affine

WORDS_IN_FLIGHT = 16
"""Words that a thread loads before it keeps the first."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a space. If it is `cut`, a part of it may lie outside."""

    shape: TileShape
    space: tuple[int, ...]
    cut: bool

    @property
    def crossing(self) -> Crossing:
        """What crosses."""
        return self.shape.crossing

    @property
    def side(self) -> int:
        """The points along both axes."""
        return self.shape.crossing.side

    @property
    def threads(self) -> int:
        """The threads of the block."""
        return self.shape.threads

    @property
    def odd(self) -> bool:
        """Whether the runs of neither axis begin alike in sectors."""
        crossing = self.crossing
        return not (crossing.anchored(crossing.stored) or crossing.anchored(crossing.loaded))

    def name(self, axis: int) -> str:
        """What the variables along an axis are called."""
        return "stored" if axis == self.crossing.stored else "loaded"

    def inside(self) -> list[str]:
        """The tests that a point is inside of the space."""
        tests = []
        for axis in (self.crossing.stored, self.crossing.loaded) if self.cut else ():
            if self.crossing.anchored(axis):
                tests.append(f"{self.name(axis)} >= 0")
            tests.append(f"{self.name(axis)} < {self.space[axis]}")
        return tests


@dataclass(frozen=True, slots=True)
class Skew:
    """How far behind a word's begin the runs of a tile begin: the first by `first` points, each
    other by `step` more than the one before it, modulo `width`.
    """

    first: str
    step: int
    width: int

    def of(self, run: str) -> str:
        """The skew of a run, as text."""
        if self.step == 0:
            return self.first
        return f"({self.first} + ({run}) * {self.step} & {self.width - 1})"

    def head(self, run: str) -> str:
        """The points of a run before its first word, as text."""
        return f"(-{self.of(run)} & {self.width - 1})"


def declare_skew(
    body: Body, tile: Tile, leader: Load | Store, axis: int, width: int
) -> Skew | None:
    """The skew of a flat access's runs along an axis; None if all begin with a word."""
    crossing = tile.crossing
    if width == 1 or crossing.anchored(axis) or begins_aligned(leader, axis, width):
        return None
    name, size = body.fresh(), leader.buffer.type.dtype.itemsize
    with body.scope():
        for number in (crossing.stored, crossing.loaded):
            body.bind(axes_of(tile.space)[number], f"{tile.name(number)}_start")
        compute(body, leader.indices)
        place = f"{body.pointers[leader.buffer]} + {index(body, leader.indices[0])}"
    body.line(f"const int {name} = int(tg_u64({place}) / {size} & {width - 1});")
    across = crossing.loaded if axis == crossing.stored else crossing.stored
    strides, _ = affine(leader.indices[0]) or ({}, 0)
    return Skew(name, strides.get(across, 0) % width, width)


@dataclass(frozen=True, slots=True)
class Words:
    """Words of `width` points in runs along an axis; neighbouring threads take neighbouring ones.

    Those of one access, the `leader`, are aligned. A thread's begin at place `column` of their
    runs, the first of which is `run`.
    """

    tile: Tile
    leader: Load | Store
    axis: int
    width: int
    skew: Skew | None
    column: str
    run: str

    @property
    def parts(self) -> int:
        """How many words a thread takes."""
        return self.tile.side**2 // (self.tile.threads * self.width)

    @property
    def apart(self) -> int:
        """How many runs lie from one word of a thread to its next; 0 if not even one."""
        return self.tile.threads * self.width // self.tile.side

    @property
    def anew(self) -> bool:
        """Whether the place of each word is computed anew, where points are words and runs begin
        anywhere in a sector.

        That takes more instructions and registers, so that fewer blocks run at a time and loads
        come apart: on an H200, float32 then moves 84 % of what a copy moves, and else 71 %.
        """
        return self.tile.odd and self.leader.buffer.type.dtype.itemsize >= WORD

    @property
    def batch(self) -> int:
        """How many words a thread loads before it keeps the first."""
        return min(self.parts, WORDS_IN_FLIGHT)


def word_widths(tile: Tile, loads: Iterable[Load], stores: Iterable[Store]) -> tuple[int, int]:
    """The points of the words by which loads and stores of a whole tile are made.

    All words of a thread are to begin at the same place of their runs, however these begin.
    """
    crossing = tile.crossing
    widths = word_of(loads, crossing.loaded), word_of(stores, crossing.stored)
    apart = [tile.threads * width // tile.side for width in widths]
    steady = all(number and number % max(widths) == 0 for number in apart)
    return widths if steady else (1, 1)


def declare_words(
    body: Body, tile: Tile, leader: Load | Store, axis: int, width: int, skew: Skew | None
) -> Words:
    """Declare where the words of a thread begin."""
    column, run = body.fresh(), body.fresh()
    per_run = tile.side // width
    body.line(f"const int {column} = thread % {per_run} * {width}, {run} = thread / {per_run};")
    if skew is not None:
        first, column = column, body.fresh()
        text = f"{first} + {skew.head(run)}"
        if axis == tile.crossing.loaded:
            # a thread that has the rim instead of a word loads its neighbour's: branches cost more
            text = f"{text} - ({text} > {tile.side - width} ? {width} : 0)"
        body.line(f"const int {column} = {text};")
    return Words(tile, leader, axis, width, skew, column, run)


def word_test(body: Body, words: Words, access: Load | Store) -> dict[Buffer, str]:
    """The test that a word at a computed place is aligned, by its buffer; none if all are."""
    shifted = words.skew is not None or words.tile.crossing.anchored(words.axis)
    aligned = not shifted and begins_aligned(access, words.axis, words.width)
    if access is words.leader or aligned:
        return {}
    nbytes = access.buffer.type.dtype.itemsize * words.width
    place = f"{body.pointers[access.buffer]} + {index(body, access.indices[0])}"
    return {access.buffer: f"(tg_u64({place}) & {nbytes - 1}) == 0"}


@contextmanager
def each_word(
    body: Body, words: Words, parts: int, begin: str = "", tests: Iterable[str] = ()
) -> Iterator[None]:
    """Text that runs for each `part` of a thread's words that passes the tests, with both axes
    bound to where it begins.
    """
    tile = words.tile
    body.line(f"#pragma unroll {min(parts, WORDS_IN_FLIGHT)}")
    with body.block(f"for (int part = 0; part < {parts}; ++part)"):
        number = f"({begin}part)" if begin else "part"
        column, run = words.column, f"{words.run} + {number} * {words.apart}"
        if words.anew:
            place = body.fresh()
            body.line(f"const int {place} = {number} * {tile.threads} + thread;")
            column, run = f"{place} % {tile.side}", f"{place} / {tile.side}"
        elif words.apart == 0:
            turns = tile.side // tile.threads
            column = f"{column} + {number} % {turns} * {tile.threads}"
            run = f"{number} / {turns}"
        along_stored = words.axis == tile.crossing.stored
        _bind_point(body, tile, *((column, run) if along_stored else (run, column)))
        with _test(body, tests):
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


def rim(words: Words, skew: Skew) -> Points:
    """The points of runs along the loaded axis that no word has."""
    side, width = words.tile.side, words.width
    run, item = f"point / {width}", f"point % {width}"
    head = skew.head(run)
    place = f"{item} + ({item} < {head} ? 0 : {side - width})"
    return Points(side * width, run, place, (f"{head} != 0",))


def overhang(tile: Tile) -> Points:
    """The points past the side of a tile that some of its sheared runs have; neighbours follow each
    other along the loaded axis.
    """
    side = tile.side
    count = tile.crossing.overhang * side
    return Points(count, f"{side} + point / {side}", f"point % {side}", ())


@contextmanager
def each_point(body: Body, tile: Tile, points: Points, tests: Iterable[str] = ()) -> Iterator[None]:
    """Text that runs for each `part` of a thread's points that passes the tests, with both axes
    bound.
    """
    with body.unrolled(f"for (int part = 0; part < {points.parts(tile)}; ++part)"):
        body.line(f"const int point = part * {tile.threads} + thread;")
        _bind_point(body, tile, points.stored_place, points.loaded_place)
        exists = [f"point < {points.count}"] if points.count % tile.threads else []
        with _test(body, (*exists, *points.tests, *tests)):
            yield


def _bind_point(body: Body, tile: Tile, stored_place: str, loaded_place: str) -> None:
    """Declare the place of a point in the tile, and bind the axes to where it is in the space."""
    crossing = tile.crossing
    for axis, place in ((crossing.stored, stored_place), (crossing.loaded, loaded_place)):
        name = tile.name(axis)
        kind = index_type(tile.space[axis] + tile.side + crossing.overhang)
        body.line(f"const int {name}_place = {place};")
        body.line(f"const {kind} {name} = {name}_start + {name}_place;")
        body.bind(axes_of(tile.space)[axis], name)


@contextmanager
def _test(body: Body, tests: Iterable[str]) -> Iterator[None]:
    text = " && ".join(tests)
    with body.block(f"if ({text})") if text else body.scope():
        yield
