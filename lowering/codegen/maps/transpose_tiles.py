"""Transpose: a map that stores along one axis of memory what it loads along another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from lowering.codegen.offsets import offsets_of
from lowering.plan.kernel import MapNest, Store
from lowering.plan.nest_analysis import loads
from lowering.plan.rounding import ceil_div
from lowering.plan.strides import offset_in
from tracegraph.ir.scalar import Axis, Load, affine

LEAST_EXTENT = 16
LEAST_POINTS = 1 << 16
LARGE_POINTS = 1 << 22  # of which there are enough of large tiles
LARGEST_POINTS = 1 << 27  # the same of those that are TILE_BYTES wide of narrow elements
TILE_BYTES = 256  # of a run of memory that a block loads or stores at once
MOST_SIDE, LEAST_SIDE = 64, 32
SHARED_BYTES = 48 << 10
BANK_BYTES = 4
WORD = 4  # bytes that an access is to move at least
SECTOR = 32  # bytes that memory reads and writes as one
BYTES_IN_FLIGHT = 80 << 10
"""What the blocks of a multiprocessor are to load at a time of tiles that lie anywhere in sectors.

A warp's access takes two lines of the cache then, of which there are few beside the tiles of many
blocks: so each block loads all of its tile before it keeps any, and has registers for it.
"""
MOST_RESIDENT, MOST_RESIDENT_NARROW = 4, 5
"""What that many blocks leave to a thread is enough to compute with; narrow elements need less."""


@dataclass(frozen=True, slots=True)
class Transpose:
    """Stores run along axis `stored`; `loads`, which run along axis `loaded`, are to be staged.

    A tile is a square of `side` by `side` points over both axes. A sector-aligned tile extends up
    to `halo` points further along `stored`. Each staged load has a tile in shared memory that is
    contiguous along `loaded`. If it is `misaligned`, its runs in global memory begin anywhere in
    a sector.
    """

    stored: int
    loaded: int
    loads: tuple[Load, ...]
    leaders: tuple[Store, Load]
    side: int
    halo: int
    misaligned: bool

    def row(self, load: Load) -> int:
        """Elements from one row of a tile to the next, such that a column meets all banks."""
        return self.side + max(1, BANK_BYTES // load.dtype.itemsize)

    def offsets(self) -> list[int]:
        """Where each load's tile begins in shared memory, and where the last one ends."""
        rows = self.side + self.halo
        return offsets_of(rows * self.row(load) * load.dtype.itemsize for load in self.loads)

    @property
    def resident(self) -> int:
        """How many blocks a multiprocessor should run at a time; 1 if the compiler may choose."""
        if not (self.misaligned or self.halo):
            return 1
        load = self.leaders[1]
        beside = self.sector(self.loaded) if self.misaligned else 0
        elements = (self.side + self.halo) * (self.side + beside)
        most = MOST_RESIDENT if load.dtype.itemsize >= WORD else MOST_RESIDENT_NARROW
        return max(1, min(most, round(BYTES_IN_FLIGHT / (elements * load.dtype.itemsize))))

    def anchored(self, axis: int) -> bool:
        """Whether tiles are to begin where the leader's runs along an axis begin a sector: those of
        an argument, which all lie alike in sectors, though none knows how before the call.
        """
        return _anchored(self.leader(axis), axis)

    def leader(self, axis: int) -> Load | Store:
        """The leader that runs along an axis."""
        return self.leaders[0] if axis == self.stored else self.leaders[1]

    def offset(self, axis: int) -> int:
        """Where the leader's runs along an axis begin in its array, but for whole sectors."""
        found = _affine(self.leader(axis))
        return 0 if found is None else found[1] % self.sector(axis)

    def sector(self, axis: int) -> int:
        """The elements of the leader along an axis that make up a sector."""
        return _sector(self.leader(axis))

    def tiles(self, axis: int, space: tuple[int, ...]) -> int:
        """How many tiles cover an axis, wherever the first begins."""
        before = self.sector(axis) - 1 if self.anchored(axis) else 0
        return ceil_div(space[axis] + before, self.side)


def find_transpose(nest: MapNest) -> Transpose | None:
    """The transpose of a map that gains from one, or None."""
    if prod(nest.space) < LEAST_POINTS:
        return None
    largest = max(nest.stores, key=lambda store: store.buffer.type.size)
    stored = _unit_axis(largest, nest.space)
    if stored is None:
        return None
    written = {store.buffer for store in nest.stores}
    read = [x for x in loads([store.value for store in nest.stores]) if x.buffer not in written]
    transposed = [load for load in read if _is_transposed(load, stored, nest.space)]
    if not transposed:
        return None
    leader = max(transposed, key=lambda load: load.buffer.type.size)
    loaded = _unit_axis(leader, nest.space)
    if loaded is None or min(nest.space[stored], nest.space[loaded]) < LEAST_EXTENT:
        return None
    staged = tuple(load for load in transposed if _unit_axis(load, nest.space) == loaded)
    widest = max(load.dtype.itemsize for load in staged)
    side = max(LEAST_SIDE, min(MOST_SIDE, TILE_BYTES // widest))
    most = min(nest.space[stored], nest.space[loaded])
    sides = [side]
    enough = LARGE_POINTS if 2 * side * widest < TILE_BYTES else LARGEST_POINTS
    if 2 * side * widest <= TILE_BYTES and 2 * side <= most and prod(nest.space) >= enough:
        sides = [2 * side, side]
    leaders = largest, leader
    halo = _sector(largest) if _runs_anywhere(largest, stored) else 0
    # what lies beside a run in its sectors is memory of the leader, and not of other loads
    misaligned = len(staged) == 1 and _runs_anywhere(leader, loaded)
    found = (Transpose(stored, loaded, staged, leaders, side, halo, misaligned) for side in sides)
    return next((each for each in found if each.offsets()[-1] <= SHARED_BYTES), None)


def word_of(accesses: Iterable[Load | Store], axis: int) -> int:
    """How many neighbours along an axis make up a word of each access; 1 if some are no run."""
    accesses = tuple(accesses)
    runs = all(a.guard is None and (_strides(a) or {}).get(axis) == 1 for a in accesses)
    widest = max(access.buffer.type.dtype.itemsize for access in accesses)
    return max(1, WORD // widest) if runs else 1


def begins_aligned(access: Load | Store, axis: int, width: int) -> bool:
    """Whether an access is aligned wherever its place along an axis is a multiple of the width."""
    found = _affine(access)
    if found is None or access.buffer.space == "input":
        return False
    strides, offset = found
    others = (stride for other, stride in strides.items() if other != axis)
    return not any(number % width for number in (*others, offset))


def _runs_anywhere(access: Load | Store, axis: int) -> bool:
    """Whether an access runs along an axis from places that may be anywhere in a sector, each."""
    straight = _anchored(access, axis) or begins_aligned(access, axis, _sector(access))
    return (_strides(access) or {}).get(axis) == 1 and not straight


def _anchored(access: Load | Store, axis: int) -> bool:
    strides, sector = _strides(access) or {}, _sector(access)
    alike = all(stride % sector == 0 for other, stride in strides.items() if other != axis)
    return access.buffer.space == "input" and strides.get(axis) == 1 and alike


def _sector(access: Load | Store) -> int:
    return max(1, SECTOR // access.buffer.type.dtype.itemsize)


def _strides(access: Load | Store) -> dict[int, int] | None:
    found = _affine(access)
    return None if found is None else found[0]


def _affine(access: Load | Store) -> tuple[dict[int, int], int] | None:
    """The coefficients and the offset of the position of an access, flat or not."""
    flat = len(access.indices) == 1
    return affine(
        access.indices[0] if flat else offset_in(access.buffer.type.shape, access.indices)
    )


def _unit_axis(access: Load | Store, space: tuple[int, ...]) -> int | None:
    """The axis along which an access runs through memory element by element."""
    strides = _strides(access) or {}
    axes = [a for a, stride in strides.items() if abs(stride) == 1 and space[a] > 1]
    return axes[0] if len(axes) == 1 else None


def _is_transposed(load: Load, stored: int, space: tuple[int, ...]) -> bool:
    """Whether neighbours along the stored axis lie apart, and those along another one do not.

    Its operands must be known from the point alone, as those of a load at affine indices are.
    """
    unit, strides = _unit_axis(load, space), _strides(load) or {}
    plain = load.guard is None or not loads([load.guard])
    return plain and unit not in (None, stored) and abs(strides.get(stored, 0)) >= LEAST_EXTENT


def axes_of(space: tuple[int, ...]) -> tuple[Axis, ...]:
    """The axes of a space."""
    return tuple(Axis.make(number, extent) for number, extent in enumerate(space))
