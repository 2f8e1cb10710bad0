"""Shared memory tiling: which maps transpose, and their tiles.

A map transposes if its stores are contiguous along one axis and some of its loads along another.
Through shared memory, both are coalesced: 88 to 93 % of a copy on an H200.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from lowering.codegen.offsets import offsets_of
from lowering.plan.nests.access_patterns import MIN_TILE_RUN
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.kernel import MapNest, Store
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nests.strides import offset_in
from lowering.plan.target.hardware import SECTOR_BYTES, SHARED_BYTES, WORD_BYTES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, affine
from tracegraph.ir.scalar_values import Load

MIN_POINTS = 1 << 16
"""Points of a map from which tiles pay: 2**16 transposed reach 64 to 80 % of a copy (H200)."""

LARGE_POINTS = 1 << 22
"""Points from which tiles have twice the side, where runs are still below TILE_BYTES."""

LARGEST_POINTS = 1 << 27
"""Points from which narrow elements have tiles whose runs are TILE_BYTES. Smaller tiles below it:
float16 2048x4096 reaches 94 % of a copy instead of 84 (H200)."""

TILE_BYTES = 256
"""Contiguous bytes of a tile at most: eight sectors."""

MAX_SIDE, MIN_SIDE = 64, 32
"""Side of a tile, before it is doubled: a warp has a run to itself, and tiles fit shared memory."""

BYTES_IN_FLIGHT = 80 << 10
"""Bytes of misaligned tiles that the blocks of a multiprocessor load at a time.

A misaligned access of a warp takes two cache lines, and many resident tiles would evict each other.
So few blocks are resident, and each issues all loads of its tile before it writes any to shared
memory. With sector alignment of stores, float16 65531x4093 reaches 85 to 87 % of a copy instead of
63, float32 91 instead of 84, float64 92 instead of 85 (H200).
"""

MAX_RESIDENT, MAX_RESIDENT_NARROW = 4, 5
"""Resident blocks that leave a thread enough registers: 64, or 48 for narrow elements."""


@dataclass(frozen=True, slots=True)
class Transpose:
    """Stores are contiguous along axis `stored`; `loads`, contiguous along `loaded`, go through
    tiles.

    The `leaders` are the largest store and the largest load: tiles are aligned for them.

    A tile is a square of `side` by `side` points over both axes. A sector-aligned tile extends up
    to `halo` points further along `stored`. Each load has a tile in shared memory that is
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
        """Elements from one row of a tile to the next, padded against bank conflicts in columns."""
        return self.side + max(1, WORD_BYTES // load.dtype.itemsize)

    def offsets(self) -> list[int]:
        """Where each load's tile begins in shared memory, and where the last one ends."""
        rows = self.side + self.halo
        return offsets_of(rows * self.row(load) * load.dtype.itemsize for load in self.loads)

    @property
    def resident(self) -> int:
        """Blocks that should be resident on a multiprocessor; 1 if the compiler may choose."""
        if not (self.misaligned or self.halo):
            return 1
        load = self.leaders[1]
        slack = self.sector(self.loaded) if self.misaligned else 0
        elements = (self.side + self.halo) * (self.side + slack)
        most = MAX_RESIDENT if load.dtype.itemsize >= WORD_BYTES else MAX_RESIDENT_NARROW
        return max(1, min(most, round(BYTES_IN_FLIGHT / (elements * load.dtype.itemsize))))

    def anchored(self, axis: int) -> bool:
        """Whether tiles begin at a sector of the leader's runs along an axis, by its address at run
        time: it is an argument whose runs all have the same misalignment.
        """
        return _anchored(self.leader(axis), axis)

    def leader(self, axis: int) -> Load | Store:
        """The leader that is contiguous along an axis."""
        return self.leaders[0] if axis == self.stored else self.leaders[1]

    def offset(self, axis: int) -> int:
        """The begin of the leader's runs along an axis in its array, modulo a sector."""
        found = _affine(self.leader(axis))
        return 0 if found is None else found[1] % self.sector(axis)

    def sector(self, axis: int) -> int:
        """Elements of the leader in a sector."""
        return _sector(self.leader(axis))

    def tiles(self, axis: int, space: tuple[int, ...]) -> int:
        """Tiles that cover an axis, whatever the alignment of the first."""
        before = self.sector(axis) - 1 if self.anchored(axis) else 0
        return ceil_div(space[axis] + before, self.side)


def find_transpose(nest: MapNest) -> Transpose | None:
    """The transpose of a map, or None if the map gains nothing from one."""
    if prod(nest.space) < MIN_POINTS:
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
    if loaded is None or min(nest.space[stored], nest.space[loaded]) < MIN_TILE_RUN:
        return None
    through = tuple(load for load in transposed if _unit_axis(load, nest.space) == loaded)
    widest = max(load.dtype.itemsize for load in through)
    side = max(MIN_SIDE, min(MAX_SIDE, TILE_BYTES // widest))
    most = min(nest.space[stored], nest.space[loaded])
    sides = [side]
    enough = LARGE_POINTS if 2 * side * widest < TILE_BYTES else LARGEST_POINTS
    if 2 * side * widest <= TILE_BYTES and 2 * side <= most and prod(nest.space) >= enough:
        sides = [2 * side, side]
    leaders = largest, leader
    halo = _sector(largest) if _is_misaligned(largest, stored) else 0
    # misaligned loads read whole sectors, which lie inside the array of the leader only
    misaligned = len(through) == 1 and _is_misaligned(leader, loaded)
    found = (Transpose(stored, loaded, through, leaders, side, halo, misaligned) for side in sides)
    return next((each for each in found if each.offsets()[-1] <= SHARED_BYTES), None)


def word_of(accesses: Iterable[Load | Store], axis: int) -> int:
    """Neighbours along an axis that fit a word in each access; 1 if an access is not contiguous."""
    accesses = tuple(accesses)
    runs = all(a.guard is None and (_strides(a) or {}).get(axis) == 1 for a in accesses)
    widest = max(access.buffer.type.dtype.itemsize for access in accesses)
    return max(1, WORD_BYTES // widest) if runs else 1


def begins_aligned(access: Load | Store, axis: int, width: int) -> bool:
    """Whether an access is aligned wherever its index along an axis is a multiple of the width."""
    found = _affine(access)
    if found is None or access.buffer.space == "input":
        return False
    strides, offset = found
    others = (stride for other, stride in strides.items() if other != axis)
    return not any(number % width for number in (*others, offset))


def _is_misaligned(access: Load | Store, axis: int) -> bool:
    """Whether an access is contiguous along an axis in runs of differing misalignment."""
    uniform = _anchored(access, axis) or begins_aligned(access, axis, _sector(access))
    return (_strides(access) or {}).get(axis) == 1 and not uniform


def _anchored(access: Load | Store, axis: int) -> bool:
    strides, sector = _strides(access) or {}, _sector(access)
    uniform = all(stride % sector == 0 for other, stride in strides.items() if other != axis)
    return access.buffer.space == "input" and strides.get(axis) == 1 and uniform


def _sector(access: Load | Store) -> int:
    return max(1, SECTOR_BYTES // access.buffer.type.dtype.itemsize)


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
    """The axis along which an access is contiguous, forwards or backwards."""
    strides = _strides(access) or {}
    axes = [a for a, stride in strides.items() if abs(stride) == 1 and space[a] > 1]
    return axes[0] if len(axes) == 1 else None


def _is_transposed(load: Load, stored: int, space: tuple[int, ...]) -> bool:
    """Whether a load is strided along the stored axis and contiguous along another one.

    Its guard must not depend on memory.
    """
    unit, strides = _unit_axis(load, space), _strides(load) or {}
    loadable = load.guard is None or not loads([load.guard])
    return loadable and unit not in (None, stored) and abs(strides.get(stored, 0)) >= MIN_TILE_RUN


def axes_of(space: tuple[int, ...]) -> tuple[Axis, ...]:
    """The axes of a space."""
    return tuple(Axis.make(number, extent) for number, extent in enumerate(space))
