"""Target: what planning needs to know of the devices of a backend, as data.

Planning, scheduling and fusion read these figures and never the name of a device. Each backend has
its own Target, beside its code in `lowering.backends`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracegraph.ir.types import ArrayType


@dataclass(frozen=True, slots=True)
class Costs:
    """What a device takes, in µs. Each backend's `Target` has its own.

    Args:
        kernel: a further kernel in a chain, with little to do.
        kernel_in_branch: the same in the branch of a node.
        check: what reading its flags adds to a kernel.
        branch: an IF, IF-ELSE or SWITCH node, besides what it runs. Entering a WHILE node is taken
            to cost as much.
        fork: the start of predicated branches beside each other.
        beside: a kernel that is skipped beside one that runs.
        trip: one more run of the body of a WHILE node, besides what it runs.
        update: writing a new address into a kernel node, when a call brings another array.
        updates_libraries: whether a library's node can be given other addresses at all.
        block: a block of a kernel that is skipped.
        megabyte: reading or writing one, from 4.2 TB/s.
        gigaflop: a billion operations of a product.
        again: what an op may take, in units of `Elementwise.cost`, to be done again for each use of
            its result, rather than once and stored.
        elsewhere: bytes that could be read in order while one element, or a run of some, is read
            anywhere in an array: in arrays of up to so many bytes, so many.
        calls: where each op is calls on arrays, the bytes that one could go through while those of
            a gather or a roll do a few elements, for each array that it reads; else 0.
    """

    kernel: float
    kernel_in_branch: float
    check: float
    branch: float
    fork: float
    beside: float
    trip: float
    update: float
    updates_libraries: bool
    block: float
    megabyte: float
    gigaflop: float
    again: float
    elsewhere: tuple[tuple[float, int], ...]
    calls: int

    @property
    def control_is_free(self) -> bool:
        """Whether a loop or branch costs nothing as a node, so that no other schedule is faster."""
        return self.branch == self.trip == 0

    def reading(self, array: ArrayType, points: int, run: int) -> float:
        """Bytes that could be read in order while elements are read in runs out of order."""
        least = next(cost for most, cost in self.elsewhere if array.nbytes <= most)
        return points * max(array.dtype.itemsize, least / max(run, 1))


@dataclass(frozen=True, slots=True)
class Limits:
    """What one kernel may have.

    Args:
        kernel_buffers: buffers that the nests of a fused kernel access. The default fits CUDA's
            32764 bytes of kernel parameters, 8 for each buffer.
    """

    kernel_buffers: int = 4000


@dataclass(frozen=True, slots=True)
class FusionPolicy:
    """When nests that could share a kernel do.

    Args:
        strided_bytes: row passes are fused unless that adds this many bytes of strided access. The
            default is what an H200 moves in the time of a further kernel: 0.7 µs at 4.2 TB/s.
    """

    strided_bytes: float = 0.7e6 / 0.24


@dataclass(frozen=True, slots=True)
class Target:
    """The devices of one backend, as planning sees them."""

    costs: Costs
    limits: Limits = field(default_factory=Limits)
    fusion: FusionPolicy = field(default_factory=FusionPolicy)
