"""A loop whose lanes never meet: one thread makes all steps of its lane, and ends by itself.

It is one kernel without barriers, which keeps what a lane carries in registers. Where the condition
of the loop asks whether any lane goes on, each thread asks for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod

from lowering.draft.draft_nodes import (
    Block,
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    blocks,
    walk,
)
from lowering.plan.nests.analysis import nest_accumulators, nest_expressions, nest_roots, roots_of
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, Store, space_index
from lowering.plan.nests.lane_nests import (
    Decisions,
    Extents,
    LaneNests,
    inner_points,
    kept_by_lanes,
    lanes_of,
)
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nests.weight import traffic, weight_of
from lowering.plan.target.hardware import MULTIPROCESSORS, SECTOR_BYTES, WARP, WORD_BYTES
from lowering.plan.target.scope import Scope
from lowering.plan.target.target import Costs, PersistentCosts
from lowering.scheduling.persistent_time import OVERLAPPED, operations_of
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Apply, Load
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ir.types import ArrayType

SCHEDULE = "per_lane"

LANE_THREADS = 128
"""Threads of a block of lanes, at most: lanes that end early wait for the others of their block.
Blocks are smaller where these would leave multiprocessors idle."""


def scope_of(lanes: Extents) -> Scope:
    """A thread for each lane."""
    count, threads = prod(lanes), WARP
    while threads < LANE_THREADS and count > threads * MULTIPROCESSORS:
        threads *= 2
    return Scope(ceil_div(count, threads), threads, lanes=lanes)


def lanes_in(loop: DraftLoop) -> LaneNests | str:
    """The lanes of a loop, or why it has none. Of several, those with the least work."""
    nodes = list(walk(loop.body))
    for node in nodes:
        if isinstance(node, FinishedNode):
            return f"{node.plan_node.noun} inside"
    nests = [nest for node in nodes if isinstance(node, DraftKernel) for nest in node.nests]
    choices = [loop, *[node for node in nodes if isinstance(node, DraftLoop | DraftBranch)]]
    found: list[LaneNests] = []
    reason = "one element, or no axis along which elements never meet"
    for extents in _candidates(loop, nests):
        lanes = lanes_of(nests, extents, _decisions(choices, extents))
        if isinstance(lanes, str):
            reason = lanes
        else:
            found.append(lanes)
    return min(found, key=_points) if found else reason


def _points(lanes: LaneNests) -> int:
    """The points of all nests that a lane has."""
    return sum(inner_points(nest, lanes) for nest in lanes.roles)


def _candidates(loop: DraftLoop, nests: Sequence[Nest]) -> Iterator[Extents]:
    """The lanes that a loop may have: those of its mask, or the first axes of its largest nest."""
    if loop.construct.lanes is not None:
        yield loop.construct.lanes
        return
    spaces = [nest.space for nest in nests if isinstance(nest, (MapNest, ReduceNest, RowNest))]
    folds = [nest for nest in nests if isinstance(nest, (ReduceNest, RowNest))]
    spaces += [nest.loop for nest in folds if not nest.space]
    widest = max(spaces, key=prod, default=())
    while widest[:1] == (1,):
        widest = widest[1:]
    for rank in range(len(widest), 0, -1):
        if prod(widest[:rank]) > 1 and widest[rank - 1] > 1:
            yield widest[:rank]


def _decisions(nodes: Sequence[DraftLoop | DraftBranch], extents: Extents) -> Decisions:
    """What each of the lanes may decide for itself."""
    apart = [node for node in nodes if node.construct.lanes == extents]
    loops = [node for node in apart if isinstance(node, DraftLoop)]
    entries = frozenset([loop.entry for loop in loops if loop.entry is not None])
    return Decisions(frozenset([node.condition for node in apart]), entries)


def hand_out(
    loop: DraftLoop,
    lanes: LaneNests,
    is_read_later: Callable[[Buffer], bool],
    new_buffer: Callable[[ArrayType], Buffer],
) -> tuple[list[DraftNode], list[DraftNode]]:
    """Hand out the values that all lanes share and others read when the loop has ended.

    `is_read_later` says so of buffers of the block around the loop. One lane may end before others
    begin, so that no thread overwrites what they begin with: each value has a further buffer, which
    nothing in the loop reads. Returns what fills these before the loop, and what reads them behind.
    """
    inside = [block.owned for node in walk(loop.body) for block in blocks(node)]
    own = loop.body.owned.union(*inside)
    before: list[DraftNode] = []
    behind: list[DraftNode] = []
    for buffer, place in lanes.places.items():
        if place or buffer in own or not is_read_later(buffer):
            continue
        last = new_buffer(buffer.type)
        for nodes, target, source in (
            (before, last, buffer),
            (loop.body.nodes, last, buffer),
            (behind, buffer, last),
        ):
            nodes.append(DraftKernel([_copy(target, source)], loop.sources, loop.within))
    return before, behind


def _copy(target: Buffer, source: Buffer) -> Nest:
    index = space_index(target.type.shape)
    return MapNest(target.type.shape, (Store(target, index, Load.make(source, index)),))


def keep_apart(body: Block, lanes: LaneNests) -> None:
    """Let no scratch that stays in memory share it: one lane may be at its end when others begin.

    What lanes keep in registers needs no memory but on the host, which runs node after node.
    """
    kept = set(kept_by_lanes(lanes))
    for block in (body, *[block for node in walk(body) for block in blocks(node)]):
        block.resident = frozenset(block.resident | (block.owned - kept))


def times(
    body: Block, lanes: LaneNests, costs: PersistentCosts, outside: Costs
) -> tuple[float, float]:
    """The time before and behind all steps, and that of one step, in µs.

    A step takes as long as one thread waits for its operations, as memory moves what is not kept,
    or as the device computes for all lanes. Estimates of kernels leave out what these compute for
    longer than they move; here, that is left out as well. What every lane repeats counts.
    """
    count, kept = prod(lanes.extents), set(kept_by_lanes(lanes))
    moved = sum(buffer.type.nbytes for buffer in kept if lanes.places[buffer])
    waiting = nbytes = computed = left_out = 0.0
    for steps, nest in _nests(body):
        own = 0.0
        for points, roots in _parts(nest, lanes):
            below = subexpressions(roots)
            loads = [e for e in below if isinstance(e, Load) and e.buffer not in kept]
            each = (operations_of(below) + len(loads) + 1) * costs.thread_operation
            waiting += steps * ceil_div(points, OVERLAPPED) * each
            own += points * _weighted(below)
        if lanes.roles[nest] == "uniform":
            own = _repeated(nest)
        own *= count * outside.gigaoperation / 1e9
        computed += steps * own
        if lanes.roles[nest] != "uniform":
            in_kernels = outside.megabyte * weight_of([nest]).nbytes / 1e6
            left_out += steps * max(own - in_kernels, 0.0)
        nbytes += steps * sum(_spread(b, n, lanes) for b, n in traffic(nest) if b not in kept)
    moving = outside.megabyte * nbytes / 1e6
    step = max(waiting, moving, computed) - left_out
    return 2 * outside.megabyte * moved / 1e6, max(step, waiting)


def _weighted(expressions: Iterable[Expr]) -> float:
    """The operations of expressions; floating-point numbers of eight bytes count twice."""
    return sum(map(_weight, expressions))


def _weight(expr: Expr) -> float:
    if not isinstance(expr, Apply) or not isinstance(expr.op.form, Elementwise):
        return 0.0
    wide = expr.dtype.kind in "fc" and expr.dtype.itemsize > WORD_BYTES
    return expr.op.form.cost * (2 if wide else 1)


def _repeated(nest: Nest) -> float:
    """The operations of a nest that a lane repeats, each once for all points that share it."""
    axes: dict[Expr, frozenset[Axis]] = {}
    total = 0.0
    for expr in nest_expressions(nest):
        own = frozenset((expr,)) if isinstance(expr, Axis) else frozenset[Axis]()
        axes[expr] = own.union(*[axes[child] for child in expr.children])
        total += _weight(expr) * prod(axis.extent for axis in axes[expr])
    return total


def _spread(buffer: Buffer, nbytes: int, lanes: LaneNests) -> int:
    """The bytes that memory moves for accesses of some bytes.

    Neighbouring threads access neighbouring elements of what the loop writes if lanes are its last
    axis. Else each access of a thread moves a sector.
    """
    place = lanes.places.get(buffer)
    if not place or place[-1] == buffer.type.ndim - 1:
        return nbytes
    return nbytes * SECTOR_BYTES // buffer.type.dtype.itemsize


def _parts(nest: Nest, lanes: LaneNests) -> Iterator[tuple[int, Sequence[Expr]]]:
    """The expressions of a nest, and at how many points a lane computes them."""
    points = inner_points(nest, lanes)
    if not isinstance(nest, (ReduceNest, RowNest)) or lanes.roles[nest] == "deciding":
        yield points, nest_roots(nest)
        return
    passes = nest.passes if isinstance(nest, RowNest) else ()
    yield points, roots_of(nest_accumulators(nest), [s for p in passes for s in p.stores], ())
    rows = points // max(prod(nest.loop), 1)
    yield rows, roots_of((), nest.stores, nest.signals)


def _nests(body: Block, steps: int = 1) -> Iterator[tuple[int, Nest]]:
    """The nests of a body, and how often a step of it runs each."""
    for node in body.nodes:
        if isinstance(node, DraftKernel):
            yield from ((steps, nest) for nest in node.nests)
        inner = steps * node.construct.expected_steps if isinstance(node, DraftLoop) else steps
        for block in blocks(node):
            yield from _nests(block, inner)
