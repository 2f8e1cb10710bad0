"""Collectives as library calls: what the devices of a mesh do together.

On the host, where each device is a thread, they meet in a `Rendezvous`. All devices have the same
Plan; where they are in it is decided by one total order of these calls (`exclusive`). Collectives
that follow one another and do not depend on each other are one call, a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import ClassVar

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray
from lowering.plan.calls.rendezvous import Array, Arrival, place
from lowering.plan.nests.buffer_fields import Reads, Writes
from tracegraph.errors import CollectiveOutsideShardError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source, lines_of


@dataclass(frozen=True, slots=True)
class AllReduce:
    """The sum, the largest or the smallest of each element, by `fold`, for all."""

    sends_all: ClassVar[bool] = True

    fold: str

    @property
    def verb(self) -> str:
        """What messages call it."""
        return f"all-reduce {self.fold}"

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        """In the order of devices, so that the result does not depend on which comes last."""
        folded = reduce(_FOLDS[self.fold], sources)
        return [folded] * len(sources)


_FOLDS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
}


@dataclass(frozen=True, slots=True)
class AllGather:
    """The operands of all, for all."""

    verb: ClassVar[str] = "all-gather"
    sends_all: ClassVar[bool] = True

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        """The results of the devices, from their operands."""
        gathered = np.stack(sources)
        return [gathered] * len(sources)


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """Of the sum, block i for device i."""

    verb: ClassVar[str] = "reduce-scatter"
    sends_all: ClassVar[bool] = False

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        """The results of the devices, from their operands."""
        return list(AllReduce("sum").combined(sources)[0])


@dataclass(frozen=True, slots=True)
class AllToAll:
    """Block j of device i becomes block i of device j."""

    verb: ClassVar[str] = "all-to-all"
    sends_all: ClassVar[bool] = False

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        """The results of the devices, from their operands."""
        return [np.stack([source[i] for source in sources]) for i in range(len(sources))]


@dataclass(frozen=True, slots=True)
class Permute:
    """The operand of another device, by pairs (source, target) of `perm`, one for each device."""

    verb: ClassVar[str] = "permute"
    sends_all: ClassVar[bool] = False

    perm: tuple[tuple[int, int], ...]

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        """The results of the devices, from their operands."""
        from_ = {target: source for source, target in self.perm}
        return [sources[from_[i]].copy() for i in range(len(sources))]


PHASE_BYTES = 1 << 20
"""What a device may have in a collective that is a part of a kernel; libraries move more faster."""

KERNEL_BYTES = 6 << 20
"""What a device may store in a collective that is a kernel of its own."""

WORDS_BYTES = 256 << 10
"""What a device may store that travels as words: twice the bytes, without a message behind them."""

SMALL_BYTES = 4096
"""What travels as words that each block of a kernel reads, so that each has the whole result."""


# `sends_all`: each device sends all that it has to each, in place of parts of it
CollectiveKind = AllReduce | AllGather | ReduceScatter | AllToAll | Permute


@record
class CollectiveCall(LibraryCall):
    """Collectives of the devices along `axes`, `count` of them, which are carried out at once.

    Each has a kind, a source and a target, which are contiguous. Blocks of several devices are
    along axis 0. In a step that is skipped, all devices carry them out all the same.
    """

    exclusive: ClassVar[str] = "collectives"

    kinds: tuple[CollectiveKind, ...]
    sources: Reads[tuple[StridedArray, ...]]
    targets: Writes[tuple[StridedArray, ...]]
    axes: tuple[str, ...]
    count: int
    lines: tuple[Source, ...]

    @property
    def may_be_phase(self) -> bool:  # type: ignore[override]
        return sum([array.nbytes for array in self.sources]) <= PHASE_BYTES

    @property
    def stored_bytes(self) -> int:
        """What a kernel stores into the memory of other devices, and of its own, where each is sent
        all that it needs at once.
        """
        pairs = zip(self.kinds, self.sources, strict=True)
        return sum([x.nbytes * (self.count if kind.sends_all else 1) for kind, x in pairs])

    @property
    def may_be_kernel(self) -> bool:
        """Whether a kernel of its own carries it out, where devices reach one another's memory."""
        pairs = zip(self.kinds, self.sources, strict=True)
        folded = sum([x.nbytes for kind, x in pairs if isinstance(kind, AllReduce)])
        return self.stored_bytes - max(self.count - 2, 0) * folded <= KERNEL_BYTES  # in two parts

    @property
    def travels_as_words(self) -> bool:
        """Whether a kernel sends words that have their turn beside them. Each device must be sent
        something by those to which it sends, so that it knows when it may send more.
        """
        pairs = {p for kind in self.kinds if isinstance(kind, Permute) for p in kind.perm}
        is_mutual = pairs == {(j, i) for i, j in pairs} or any(k.sends_all for k in self.kinds)
        return self.stored_bytes <= WORDS_BYTES and is_mutual

    @property
    def is_small(self) -> bool:
        """Whether each block of a kernel reads all that devices are sent."""
        return sum([array.nbytes for array in self.sources]) <= SMALL_BYTES

    @property
    def noun(self) -> str:  # type: ignore[override]
        return "a collective" if len(self.kinds) == 1 else "a group of collectives"

    @property
    def name(self) -> str:
        verbs = ", ".join(dict.fromkeys(kind.verb for kind in self.kinds))
        times = f", {len(self.kinds)} at once" if len(self.kinds) > 1 else ""
        return f"{verbs} over {', '.join(self.axes)}{times}"

    @property
    def title(self) -> str:
        types = (ArrayType(a.buffer.type.dtype, a.shape) for a in self.sources)
        return f"{self.name}, {', '.join(map(str, types))}"

    @property
    def run_host(self) -> Callable[..., None]:
        text = f"{self.title} at {lines_of(self.lines)}" if self.lines else self.title

        def run(*arrays: Array) -> None:
            sources, targets = arrays[: len(self.kinds)], arrays[len(self.kinds) :]
            if place.rendezvous is None:
                raise CollectiveOutsideShardError(self.name)
            group = place.rendezvous.group(place.device, self.axes)
            arrival = Arrival(group, self, text, sources, targets)
            place.rendezvous.meet(place.device, arrival, self.combined)

        return run

    def combined(self, sources: Sequence[Sequence[Array]]) -> Sequence[Sequence[Array]]:
        """The results of each device, from the operands of each device."""
        pairs = zip(self.kinds, zip(*sources, strict=True), strict=True)
        return list(zip(*[kind.combined(column) for kind, column in pairs], strict=True))


KINDS: dict[str, Callable[..., CollectiveKind]] = {
    "psum": lambda: AllReduce("sum"),
    "pmax": lambda: AllReduce("max"),
    "pmin": lambda: AllReduce("min"),
    "all_gather": AllGather,
    "psum_scatter": ReduceScatter,
    "all_to_all": AllToAll,
    "ppermute": Permute,
}
"""By the name of an op: the kind that carries it out, made of its further attributes."""
