"""The times of nodes, as measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lowering.plan.nests.work import Work
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NodeTime:
    """What one node took in a call.

    Args:
        title: what it does.
        line: the user's lines that it comes from.
        depth: the loops and branches around it.
        runs: how often it ran.
        seconds: of all its runs; of a loop or branch, what is spent on it besides its nodes.
        work: of one run.
        least: the seconds that all runs take at least on the device; None where that is unknown,
            as of a kernel with a loop inside whose steps depend on data.
        number: that of its node, in the order in which `lowering.plan.nodes.launched` has them.
    """

    title: str
    line: str
    depth: int
    runs: float
    seconds: float
    work: Work
    least: float | None
    number: int = 0

    @property
    def bandwidth(self) -> float | None:
        """The bytes a second of what it must move; None if it moves none or took no time."""
        moved = self.work.required * self.runs
        return moved / self.seconds if moved and self.seconds else None

    @property
    def part(self) -> float | None:
        """The part of the device's limit that it reaches; above 1 where a cache answers."""
        return self.least / self.seconds if self.least and self.seconds else None


def inner(nodes: Sequence[NodeTime], number: int) -> range:
    """The positions of the nodes inside of one."""
    end = number + 1
    while end < len(nodes) and nodes[end].depth > nodes[number].depth:
        end += 1
    return range(number + 1, end)


def alike(nodes: Sequence[NodeTime]) -> list[NodeTime]:
    """Copies of a node in the body of an unrolled loop as one, with the runs and times of all."""
    found: dict[tuple[object, ...], NodeTime] = {}
    around: list[int] = []  # the number of the last row at each depth
    for number, node in enumerate(nodes):
        del around[node.depth :]
        around.append(number)
        has_nodes = number + 1 < len(nodes) and nodes[number + 1].depth > node.depth
        own = (number,) if has_nodes else (node.title, node.line)
        key = (*around[:-1], *own)
        first = found.get(key)
        if first is None:
            found[key] = node
            continue
        least = None
        if first.least is not None and node.least is not None:
            least = first.least + node.least
        runs, seconds = first.runs + node.runs, first.seconds + node.seconds
        found[key] = replace(first, runs=runs, seconds=seconds, least=least)
    return [*found.values()]
