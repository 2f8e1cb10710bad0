"""What a Plan does with the buffers of a persistent kernel outside of it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Node, walk
from lowering.plan.plan import Plan
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The nodes of a Plan that access each buffer, and the scratch buffers that share no memory.

    It is made once for all kernels: each would take as long as the Plan is large.
    """

    users: Mapping[Buffer, list[Node]]
    alone: Set[Buffer]
    stop_flag: Buffer | None = None
    """As in `Plan`."""

    @classmethod
    def of(cls, plan: Plan) -> Surroundings:
        """Those of a Plan."""
        users: dict[Buffer, list[Node]] = {}
        for node in walk(plan.graph):
            for buffer in node.accessed_buffers:
                users.setdefault(buffer, []).append(node)
        return cls(users, _alone(plan), plan.stop_flag)

    def only_in(self, buffer: Buffer, nodes: Set[Node]) -> bool:
        """Whether nobody but these nodes accesses a buffer, neither other nodes nor the caller."""
        users = self.users.get(buffer, ())
        return buffer.space == "scratch" and all(node in nodes for node in users)


def _alone(plan: Plan) -> frozenset[Buffer]:
    """The buffers whose bytes no other buffer has at another time."""
    placed = sorted(plan.offsets.items(), key=lambda item: item[1])
    starts = [offset for _, offset in placed[1:]]
    found: list[Buffer] = []
    end = 0
    for (buffer, start), following in zip(placed, [*starts, plan.arena_bytes], strict=True):
        own_end = start + max(buffer.type.nbytes, 1)
        if start >= end and own_end <= following:
            found.append(buffer)
        end = max(end, own_end)
    return frozenset(found)
