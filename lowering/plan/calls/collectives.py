"""Collectives as library calls: what devices of a mesh do together.

On the host, where each device is a thread, they meet in a `Rendezvous`. All devices have the same
Plan; where they are in it is decided by one total order of these calls (`exclusive`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import ClassVar

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray
from lowering.plan.calls.rendezvous import Array, Arrival, place
from lowering.plan.nests.buffer_fields import Reads, Writes
from tracegraph.errors import CollectiveOutsideShardError
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source, lines_of


@record
class CollectiveCall(LibraryCall):
    """Base of collectives: `source` of each device along `axes`, `count` of them, to `target`.

    Both are contiguous. Blocks of several devices are along axis 0.
    """

    noun: ClassVar[str] = "a collective"
    skippable: ClassVar[bool] = False
    exclusive: ClassVar[str] = "collectives"
    verb: ClassVar[str]

    source: Reads[StridedArray]
    target: Writes[StridedArray]
    axes: tuple[str, ...]
    count: int
    lines: tuple[Source, ...]

    @property
    def name(self) -> str:
        return f"{self.verb} over {', '.join(self.axes)}"

    @property
    def title(self) -> str:
        return f"{self.name}, {ArrayType(self.source.buffer.type.dtype, self.source.shape)}"

    @property
    def run_host(self) -> Callable[..., None]:
        text = _text(self.title, self.lines)

        def run(source: Array, target: Array) -> None:
            if place.rendezvous is None:
                _alone(self.verb, self.count)
                target[...] = self.combined([source])[0]
                return
            group = place.rendezvous.group(place.device, self.axes)
            arrival = Arrival(group, self, text, source, target)
            place.rendezvous.meet(place.device, arrival, self.combined)

        return run

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        """The results of the devices, in order, from their operands."""
        raise NotImplementedError


def _alone(verb: str, count: int) -> None:
    if count != 1:
        raise CollectiveOutsideShardError(verb)


def _text(name: str, lines: Sequence[Source]) -> str:
    return f"{name} at {lines_of(lines)}" if lines else name


@record
class AllReduce(CollectiveCall):
    """The sum, the largest or the smallest of each element, by `fold`, for all."""

    fold: str

    @property
    def verb(self) -> str:  # type: ignore[override]
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


@record
class AllGather(CollectiveCall):
    """The operands of all, for all."""

    verb: ClassVar[str] = "all-gather"

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        gathered = np.stack(sources)
        return [gathered] * len(sources)


@record
class ReduceScatter(CollectiveCall):
    """Of the sum, block i for device i."""

    verb: ClassVar[str] = "reduce-scatter"

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        folded = reduce(_FOLDS["sum"], sources)
        return list(folded)


@record
class AllToAll(CollectiveCall):
    """Block j of device i becomes block i of device j."""

    verb: ClassVar[str] = "all-to-all"

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        return [np.stack([source[i] for source in sources]) for i in range(len(sources))]


@record
class Permute(CollectiveCall):
    """The operand of another device, by pairs (source, target) of `perm`, one for each device."""

    verb: ClassVar[str] = "permute"

    perm: tuple[tuple[int, int], ...]

    def combined(self, sources: Sequence[Array]) -> Sequence[Array]:
        from_ = {target: source for source, target in self.perm}
        return [sources[from_[i]].copy() for i in range(len(sources))]


KINDS: dict[str, Callable[..., CollectiveCall]] = {
    "psum": partial(AllReduce, fold="sum"),
    "pmax": partial(AllReduce, fold="max"),
    "pmin": partial(AllReduce, fold="min"),
    "all_gather": AllGather,
    "psum_scatter": ReduceScatter,
    "all_to_all": AllToAll,
    "ppermute": Permute,
}
"""By the name of an op: the call that carries it out."""

CALLS: tuple[type[CollectiveCall], ...] = (AllReduce, AllGather, ReduceScatter, AllToAll, Permute)
"""All kinds of collectives."""
