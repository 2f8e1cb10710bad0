"""The cost model: estimates of nodes, in microseconds, from the costs of a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from math import fsum, inf

from lowering.draft.draft_nodes import DraftKernel, FinishedNode, node_reads, node_writes
from lowering.plan.lockstep import at_once, collective_of
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, ReduceNest, RowNest, ScanNest
from lowering.plan.nests.weight import Weight, weight_of
from lowering.plan.target.target import Costs

Leaf = DraftKernel | FinishedNode
"""A node without bodies."""


POINTS_PER_BLOCK = 512


def mean(times: Sequence[float]) -> float:
    """The mean, as `statistics.fmean` gives it, whose module takes 7 ms to import."""
    return fsum(times) / len(times)


def work(costs: Costs, nodes: Iterable[Leaf]) -> float:
    """The time of nodes for what they do, without their launches: memory traffic, products, and
    exchanges between devices.
    """
    total, before = 0.0, None
    for node in nodes:
        weight, call = _weight(node), None
        total += costs.megabyte * weight.nbytes / 1e6 + costs.gigaflop * weight.operations / 1e9
        if isinstance(node, DraftKernel):
            total += costs.fold * max(map(folds, node.nests), default=0)
        elif (call := collective_of(node.plan_node)) is not None and not at_once(call, before):
            total += min(costs.collective, costs.exchange if call.may_be_kernel else inf)
        before = call
    return total


def folds(nest: Nest) -> int:
    """How many times the threads of a nest combine what they have."""
    if isinstance(nest, RowNest):
        return sum(bool(each.accumulators) for each in nest.passes)
    return int(isinstance(nest, (ReduceNest, ScanNest)))


def skipped(costs: Costs, nodes: Iterable[Leaf]) -> float:
    """The time of nodes that are launched but not to run, without their launches.

    Each block of a kernel reads its flags; a library call does all its work.
    """
    total = 0.0
    for node in nodes:
        if isinstance(node, DraftKernel):
            total += costs.block * _weight(node).points / POINTS_PER_BLOCK
        else:
            total += work(costs, [node])
    return total


def bound(nodes: Iterable[Leaf], moving: Set[Buffer]) -> int:
    """How many nodes hold addresses that differ from call to call: those of arguments, of results
    and of `moving` buffers.
    """
    return sum([any(_is_bound(b, moving) for b in accessed(node)) for node in nodes])


def _is_bound(buffer: Buffer, moving: Set[Buffer]) -> bool:
    return buffer.space in ("input", "output") or buffer in moving


def accessed(node: Leaf) -> frozenset[Buffer]:
    """The buffers that a node reads or writes."""
    return node_reads(node) | node_writes(node)


def _weight(node: Leaf) -> Weight:
    return weight_of(node.nests) if isinstance(node, DraftKernel) else node.plan_node.weight
