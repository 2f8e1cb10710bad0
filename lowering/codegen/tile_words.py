"""Words of a tile: what each thread of a block loads, or stores, as one.

A run is the points of a tile that follow each other in memory. Where runs begin off alignment, each
perhaps by another distance, their words begin where memory's do. The points before the first and
after the last of these make up one word together; they are the rim, and are taken one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lowering.buffer import Buffer
from lowering.codegen.body import Body
from lowering.codegen.crossings import Crossing, axes_of, word_of
from lowering.codegen.expressions import compute, index, index_type
from lowering.codegen.shapes import TileShape
from lowering.kernel import Store
from tracegraph.scalar import Load, affine

WORDS_IN_FLIGHT = 16
"""Words that a thread loads before it keeps the first."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a space. If it is `cut`, a part of it lies outside."""

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


@dataclass(frozen=True, slots=True)
class Words:
    """Words of `width` points in runs along an axis; neighbouring threads take neighbouring ones.

    Those of one access, the `leader`, are aligned. A thread's begin at place `column` of their
    runs, the first of which is `run`. Where `own` is false, they are its neighbour's, too: a thread
    that has no words but the rim loads some in vain, for branches around many loads cost more.
    """

    tile: Tile
    leader: Load | Store
    axis: int
    width: int
    skew: Skew | None
    column: str
    run: str
    own: str | None

    @property
    def parts(self) -> int:
        """How many words a thread takes."""
        return self.tile.side**2 // (self.tile.shape.threads * self.width)

    @property
    def apart(self) -> int:
        """How many runs lie from one word of a thread to its next; 0 if not even one."""
        return self.tile.shape.threads * self.width // self.tile.side


def word_widths(tile: Tile, loads: Iterable[Load], stores: Iterable[Store]) -> tuple[int, int]:
    """The points of the words by which loads and stores of a tile, that are not flat, are made.

    All words of a thread are to begin at the same place of their runs, however these begin.
    """
    crossing, threads = tile.crossing, tile.shape.threads
    widths = word_of(loads, crossing.loaded), word_of(stores, crossing.stored)
    apart = [threads * width // tile.side for width in widths]
    steady = all(number and number % max(widths) == 0 for number in apart)
    return widths if steady and not tile.cut else (1, 1)


def declare_words(body: Body, tile: Tile, leader: Load | Store, axis: int, width: int) -> Words:
    """Declare where the words begin that are aligned for a flat access along an axis."""
    column, run = body.fresh(), body.fresh()
    per_run = tile.side // width
    body.line(f"const int {column} = thread % {per_run} * {width}, {run} = thread / {per_run};")
    skew = _declare_skew(body, tile, leader, axis, width) if width > 1 else None
    if skew is not None:
        place, own, first = body.fresh(), body.fresh(), column
        body.line(f"const int {place} = {first} + ({_head(skew, run)});")
        body.line(f"const bool {own} = {place} <= {tile.side - width};")
        column = body.fresh()
        body.line(f"const int {column} = {own} ? {place} : {place} - {width};")
        return Words(tile, leader, axis, width, skew, column, run, own)
    return Words(tile, leader, axis, width, None, column, run, None)


def _declare_skew(
    body: Body, tile: Tile, leader: Load | Store, axis: int, width: int
) -> Skew | None:
    """The skew of the leader's runs; None if all begin with a word."""
    crossing = tile.crossing
    if crossing.anchored(axis) or _begins_aligned(leader, axis, width):
        return None
    name, size = body.fresh(), leader.buffer.type.dtype.itemsize
    with body.scope():
        for number, start in ((crossing.stored, "stored_start"), (crossing.loaded, "loaded_start")):
            body.bind(axes_of(tile.space)[number], start)
        compute(body, leader.indices)
        place = f"{body.pointers[leader.buffer]} + {index(body, leader.indices[0])}"
    body.line(f"const int {name} = int(tg_u64({place}) / {size} & {width - 1});")
    across = crossing.loaded if axis == crossing.stored else crossing.stored
    strides, _ = affine(leader.indices[0]) or ({}, 0)
    return Skew(name, strides.get(across, 0) % width, width)


def _begins_aligned(access: Load | Store, axis: int, width: int) -> bool:
    """Whether an access is aligned wherever its place along an axis is a multiple of the width."""
    strides, offset = affine(access.indices[0]) or ({axis: 1}, 1)
    others = (stride for other, stride in strides.items() if other != axis)
    known = access.buffer.space != "input"
    return known and not any(number % width for number in (*others, offset))


def word_test(body: Body, words: Words, access: Load | Store) -> dict[Buffer, str]:
    """The test that a word at a computed place is aligned, by its buffer; none if all are."""
    shifted = words.skew is not None or words.tile.crossing.anchored(words.axis)
    aligned = not shifted and _begins_aligned(access, words.axis, words.width)
    if access is words.leader or aligned:
        return {}
    nbytes = access.buffer.type.dtype.itemsize * words.width
    place = f"{body.pointers[access.buffer]} + {index(body, access.indices[0])}"
    return {access.buffer: f"(tg_u64({place}) & {nbytes - 1}) == 0"}


@contextmanager
def each_word(
    body: Body, words: Words, parts: int, begin: str = "", outside: bool = False
) -> Iterator[None]:
    """Text that runs for each `part` of a thread's words, with both axes bound to where it begins;
    of a cut tile, for what is inside, unless `outside` is wanted as well.
    """
    tile = words.tile
    body.line(f"#pragma unroll {min(parts, WORDS_IN_FLIGHT)}")
    with body.block(f"for (int part = 0; part < {parts}; ++part)"):
        number = f"({begin}part)" if begin else "part"
        column, run = words.column, f"{words.run} + {number} * {words.apart}"
        if words.apart == 0:
            threads = tile.shape.threads
            turns = tile.side // threads
            column, run = f"{column} + {number} % {turns} * {threads}", f"{number} / {turns}"
        _bind_point(body, words, column, run)
        tests = _inside(words) if tile.cut and not outside else []
        with body.block(f"if ({' && '.join(tests)})") if tests else body.scope():
            yield


@contextmanager
def each_rim_point(body: Body, words: Words, skew: Skew) -> Iterator[None]:
    """Text that runs for each `part` of a thread's points of the rim, with both axes bound."""
    tile, width = words.tile, words.width
    points = tile.side * width
    parts = rim_parts(words)
    body.line("#pragma unroll")
    with body.block(f"for (int part = 0; part < {parts}; ++part)"):
        body.line(f"const int point = part * {tile.shape.threads} + thread;")
        row, item = f"point / {width}", f"point % {width}"
        body.line(f"const int head = {_head(skew, row)};")
        _bind_point(body, words, f"{item} + ({item} < head ? 0 : {tile.side - width})", row)
        within = f" && point < {points}" if points % tile.shape.threads else ""
        with body.block(f"if (head != 0{within})"):
            yield


def rim_parts(words: Words) -> int:
    """How many points of the rim a thread takes."""
    return -(-words.tile.side * words.width // words.tile.shape.threads)


def _head(skew: Skew, run: str) -> str:
    """The points of a run before its first word."""
    return f"-{skew.of(run)} & {skew.width - 1}"


def _bind_point(body: Body, words: Words, along: str, across: str) -> None:
    """Declare the place of a point in the tile, and bind the axes to where it is in the space."""
    tile = words.tile
    for axis in (tile.crossing.stored, tile.crossing.loaded):
        name, kind = _name(words, axis), index_type(tile.space[axis] + tile.side)
        body.line(f"const int {name}_place = {along if axis == words.axis else across};")
        body.line(f"const {kind} {name} = {name}_start + {name}_place;")
        body.bind(axes_of(tile.space)[axis], name)


def _inside(words: Words) -> list[str]:
    """The tests that a point is inside of the space."""
    crossing, space = words.tile.crossing, words.tile.space
    tests = []
    for axis in (crossing.stored, crossing.loaded):
        if crossing.anchored(axis):
            tests.append(f"{_name(words, axis)} >= 0")
        if crossing.anchored(axis) or space[axis] % crossing.side:
            tests.append(f"{_name(words, axis)} < {space[axis]}")
    return tests


def _name(words: Words, axis: int) -> str:
    return "stored" if axis == words.tile.crossing.stored else "loaded"
