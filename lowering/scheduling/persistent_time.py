"""Estimates of the time that nodes take inside of a persistent kernel, by its scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from lowering.allocation.in_place import plain_copy
from lowering.draft.draft_nodes import (
    Block,
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    walk,
)
from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.lockstep import at_once, collective_of
from lowering.plan.nests.analysis import nest_expressions, nest_loads
from lowering.plan.nests.kernel import Nest, PrintNest, ScatterNest
from lowering.plan.nests.rounding import ceil_div, power_of_two
from lowering.plan.nests.weight import traffic, weight_of
from lowering.plan.target.hardware import MAX_BLOCK_THREADS, WARP
from lowering.plan.target.scope import Scope
from lowering.plan.target.target import PersistentCosts
from lowering.scheduling.cost_model import folds, mean
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Apply

OVERLAPPED = 2
"""Points whose operations one thread overlaps."""

MOST_OF_A_THREAD = 256
"""Points of a nest up to which one thread may be faster than many."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a nest does: points, operations and loads of each, bytes in all and of near buffers."""

    points: int
    operations: int
    loads: int
    nbytes: int
    near_bytes: int
    folds: int
    collisions: float = 0
    """Updates of each element of the target of a scatter, on average."""


def fastest(body: Block, costs: PersistentCosts) -> tuple[float, Scope]:
    """The time of a step of a loop in the scope that takes the least, and that scope."""
    kernels = [node for node in walk(body) if isinstance(node, DraftKernel)]
    works = {nest: _work(nest, costs) for node in kernels for nest in node.nests}
    options = _scopes([work.points for work in works.values()], costs)
    calls = [n for n in walk(body) if isinstance(n, FinishedNode) and collective_of(n.plan_node)]
    timed = [(_Estimate(costs, scope, works, bool(calls)).body(body), scope) for scope in options]
    return min(timed, key=lambda each: each[0])


def _scopes(points: Sequence[int], costs: PersistentCosts) -> Iterator[Scope]:
    widest = max(points, default=1)
    if widest <= MOST_OF_A_THREAD:
        yield Scope(1, 1)
    threads = min(max(power_of_two(widest), WARP), MAX_BLOCK_THREADS)
    yield Scope(1, threads)
    if widest > MAX_BLOCK_THREADS:
        yield Scope(costs.cluster, MAX_BLOCK_THREADS // 2, clustered=True)
        yield Scope(costs.grid // 2, MAX_BLOCK_THREADS // 4)
        yield Scope(costs.grid, MAX_BLOCK_THREADS // 2)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """With `exchanging`, devices exchange arrays: the loop is compared with kernels and a library.
    The figures of other loops were fitted without rounds.
    """

    costs: PersistentCosts
    scope: Scope
    works: dict[Nest, _Work]
    exchanging: bool

    def body(self, block: Block) -> float:
        """One step of a loop with this body."""
        return self.costs.step + self.nodes(block.nodes)

    def nodes(self, nodes: Sequence[DraftNode]) -> float:
        """Nodes that run one after the other. Collectives in a row are one exchange."""
        total, before = 0.0, None
        for node in nodes:
            call = collective_of(node.plan_node) if isinstance(node, FinishedNode) else None
            if call is not None and at_once(call, before):
                total += self._sent(call)
            else:
                total += self.node(node)
            before = call
        return total

    def node(self, node: DraftNode) -> float:
        """One node, with the barrier behind it."""
        match node:
            case DraftLoop(body=body, construct=construct):
                return construct.expected_steps * self.body(body)
            case DraftBranch(branches=branches):
                return self.costs.phase + mean([self.nodes(b.nodes) for b in branches])
            case FinishedNode(plan_node=CustomKernelNode() as custom):
                warps = self.scope.blocks * (self.scope.threads // WARP)
                if not warps or not custom.may_be_phase:
                    return inf
                return self._barrier() + ceil_div(custom.parts, warps) * custom.part_time
            case FinishedNode():
                if (call := collective_of(node.plan_node)) is not None:
                    return self._exchange(call)
                return inf if node.plan_node.kind != "copy" else self._barrier()
            case DraftKernel(nests=nests):
                if any(isinstance(nest, PrintNest) for nest in nests):
                    return inf  # the host reads prints while the device is between kernels
                if plain_copy(node) is not None and self.scope.threads > 1:
                    return 0.0  # the buffers are swapped
                works = [self.works[nest] for nest in nests]
                combined = max([work.folds for work in works], default=0)
                own = self.costs.fold * combined if self.scope.threads > 1 else 0.0
                return self._barrier() + own + sum(map(self._nest, works))

    def _exchange(self, call: CollectiveCall) -> float:
        """Collectives; those of few bytes need no barrier of all blocks."""
        if self.costs.exchange is None or not call.may_be_phase:
            return inf
        barriers = self.costs.phase if call.is_small else 2 * self._barrier()
        return self.costs.exchange + barriers + self._sent(call)

    def _sent(self, call: CollectiveCall) -> float:
        nbytes = call.count * sum([array.nbytes for array in call.sources])
        return self.costs.link_megabyte * nbytes / 1e6

    def _barrier(self) -> float:
        if self.scope.threads == 1:
            return 0.0
        if self.scope.blocks == 1:
            return self.costs.phase
        return self.costs.cluster_barrier if self.scope.clustered else self.costs.grid_barrier

    def _nest(self, work: _Work) -> float:
        costs, scope = self.costs, self.scope
        together = OVERLAPPED if scope.threads == 1 else scope.blocks * scope.threads
        rounds = ceil_div(work.points, together)
        waiting = rounds * (work.operations + work.loads + 1) * costs.thread_operation
        if scope.threads == 1:
            return waiting
        blocks = max(min(scope.blocks, ceil_div(work.points, scope.threads)), 1)
        near = work.near_bytes if scope.blocks == 1 else 0
        moving = costs.near_megabyte * near + costs.far_megabyte * (work.nbytes - near)
        busy = max(costs.operations * work.points * work.operations, moving) / 1e6
        colliding = costs.collision * work.collisions / blocks
        if self.exchanging:
            waiting = max(waiting, (rounds - 1) * costs.round)
        return max(waiting, busy / blocks, colliding)


def operations_of(expressions: Iterable[Expr]) -> int:
    """The operations of expressions."""
    return sum(
        expr.op.form.cost
        for expr in expressions
        if isinstance(expr, Apply) and isinstance(expr.op.form, Elementwise)
    )


def _work(nest: Nest, costs: PersistentCosts) -> _Work:
    """Buffers are near that stay in the cache of one multiprocessor from a write to the next read.

    Larger ones do not: of stacks, each step reads or writes another part.
    """
    weight, combined = weight_of([nest]), folds(nest)
    operations = operations_of(nest_expressions(nest))
    collisions = 0.0
    if isinstance(nest, ScatterNest) and nest.repeats and not nest.grouped:
        collisions = weight.points / max(nest.store.buffer.type.size, 1)
    return _Work(
        weight.points,
        operations + combined,
        len(nest_loads(nest)),
        weight.nbytes,
        sum(nbytes for b, nbytes in traffic(nest) if b.type.nbytes <= costs.near_bytes),
        combined,
        collisions,
    )
