"""Kernel fusion: nests of a block become parts of few kernels.

A node of a graph costs about a microsecond, however little it does. A nest joins an earlier kernel
in one of two ways:
- *vertically*: it reads what a nest of the kernel stored, at the same point or along the same rows,
  so that the value is forwarded in a register;
- *horizontally*: it is independent of all that the kernel does, and has the same space or is small.

No kernel prints or checks twice: those stay in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod

from lowering.draft.context import Context
from lowering.draft.dependences import BARRIER, Accesses, Resource, accesses_of, nest_accesses
from lowering.draft.draft_nodes import Block, DraftKernel, DraftNode
from lowering.fusion.axis_unrolling import LEAST_SELECTIONS, unroll_axes
from lowering.fusion.dead_stores import without_dead
from lowering.fusion.pointwise import MAX_EXPRESSIONS, FusionBuilder
from lowering.fusion.read_directions import differ, split_folds
from lowering.fusion.recomputation import recompute
from lowering.fusion.row_passes import fuse_rows, same_extents
from lowering.plan.construct import Path
from lowering.plan.nests.analysis import nest_conditions, nest_size, nest_stores, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    PrintNest,
    ReduceNest,
    RowNest,
    ScatterNest,
    Store,
    exclusive,
)
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.target.target import FusionPolicy, Target
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace
from tracegraph.ir.scalar_values import Load
from tracegraph.user_source import Source

WINDOW = 12
"""Latest nodes that a nest may join: keeps the time of fusion linear."""

MAX_NESTS = 8
"""Nests of one kernel: bounds its code, and the pairs of nests that are tested."""

MAX_EPILOGUE = 100
"""Expressions of a map that follows a product by tiles: a thread has its code for each of up to 64
outputs."""

SMALL = 1 << 16
"""Points of a nest that may run in one kernel with a nest of another space: a quarter of the
threads that an H200 runs at a time, so that the nests of a kernel run at the same time."""


MAX_ROUNDS = 3
"""Rounds in which values are computed again in what was fused: bounds the time to plan."""


@dataclass(slots=True, eq=False)
class _Kernel:
    """A kernel under construction.

    `buffers` bounds the buffers that its nests access. `sources` and `within` are as in `Node`.
    """

    nests: list[FusionBuilder]
    buffers: int
    sources: dict[Source, None]
    within: dict[Path, None]


def fuse(block: Block, context: Context) -> None:
    """Fuse the nests of a block's kernels, in place, within the target's policy and limits.

    The sinks of the block are stored in any case.
    """
    if not context.fusion:
        return
    block.nodes = split_folds(block.nodes, block, context)
    if len(block.nodes) > 1:  # of one kernel, `drop_dead_stores` drops what is never read
        nodes, block.nodes = block.nodes, []
        block.nodes = _fused(nodes, block, context.target)
        for _ in range(MAX_ROUNDS):
            changed = recompute(block, context) if len(block.nodes) > 1 else ()
            for each in changed:
                moves = [] if each is block else _moves(each)
                nodes, each.nodes = each.nodes[: len(each.nodes) - len(moves)], []
                each.nodes = [*_fused(nodes, each, context.target), *moves]
            if not changed:
                break
    if context.sources > LEAST_SELECTIONS and context.target.fusion.unrolled_positions:
        _unroll_axes(block, context.target)


def _moves(body: Block) -> list[DraftNode]:
    """The node at the end of a finished body that moves new carries to where the next step reads
    them; it stays by itself, since copies of the body may rotate the carries instead.
    """
    last = body.nodes[-1]
    if not isinstance(last, DraftKernel):
        return []
    carries = set(body.carries.values())
    stores = [store for nest in last.nests for store in nest_stores(nest)]
    moved = all(type(store.value) is Load and store.buffer in carries for store in stores)
    return [last] if stores and moved else []


def _unroll_axes(block: Block, target: Target) -> None:
    """Unroll short axes of selections, unless that makes more kernels."""
    unrolled = unroll_axes(block.nodes, target.fusion.unrolled_positions)
    if unrolled is not None:
        fused = _fused(unrolled, block, target)
        if len(fused) <= len(block.nodes):
            block.nodes = fused


def _fused(nodes: list[DraftNode], block: Block, target: Target) -> list[DraftNode]:
    """The nodes of a block with nests fused; the list of nodes is emptied."""
    fused = _FusedBlock(target, frozenset(block.sinks))
    waiting = nodes[::-1]
    nodes.clear()  # fused nodes are released: fewer objects for garbage collections to visit
    while waiting:
        node = waiting.pop()
        if isinstance(node, DraftKernel):
            for nest in node.nests:
                fused.add(nest, node)
        else:
            fused.append(node, accesses_of(node))
    needed = fused.loaded | fused.kept

    def live(store: Store) -> bool:
        return store.buffer in needed or store.buffer not in block.owned

    return [_finished(node, live) for node in fused.nodes]


def _finished(node: DraftNode | _Kernel, live: Callable[[Store], bool]) -> DraftNode:
    """The node without stores of values that were only forwarded.

    They are dropped here, before any kernel is analysed as a whole, which spares
    `drop_dead_stores` most of its work.
    """
    if not isinstance(node, _Kernel):
        return node
    nests = [without_dead(builder.build(), live) for builder in node.nests]
    kept = [nest for nest in nests if nest is not None]
    return DraftKernel(kept, tuple(node.sources), tuple(node.within))


class _FusedBlock:
    """The nodes of a block that are fused so far, and the last accesses of each resource."""

    def __init__(self, target: Target, kept: frozenset[Buffer]) -> None:
        self.target = target
        self.kept = kept
        self.nodes: list[DraftNode | _Kernel] = []
        self.written: dict[Resource, int] = {}  # position of the last node that writes it
        self.read: dict[Resource, int] = {}  # of the last one that reads it
        self.loaded: set[Resource] = set()  # what is read and not forwarded
        self.barrier = 0  # no nest joins a kernel before it

    def append(self, node: DraftNode | _Kernel, accesses: Accesses) -> None:
        """Append a node of its own."""
        self.nodes.append(node)
        self.loaded |= accesses.reads
        if BARRIER in accesses.writes:
            self.barrier = len(self.nodes)
        self._record(len(self.nodes) - 1, accesses)

    def _record(self, position: int, accesses: Accesses) -> None:
        read, written = self.read, self.written
        for resource in accesses.reads:
            if read.get(resource, -1) < position:
                read[resource] = position
        for resource in accesses.writes:
            if written.get(resource, -1) < position:
                written[resource] = position

    def add(self, nest: Nest, node: DraftKernel) -> None:
        """Add a nest to the first kernel that it may join, or as a kernel of its own."""
        accesses = nest_accesses(nest)
        reads, writes = accesses.reads, accesses.writes
        buffers = len(reads) + len(writes)
        producer = _latest(self.written, reads)
        earliest = max(_latest(self.read, writes), _latest(self.written, writes))
        conflict = -1
        if not self._excludes_conflicts(earliest, nest, writes):
            conflict = earliest
            earliest += 1
        most = self.target.limits.kernel_buffers
        others = max(producer, len(self.nodes) - WINDOW, self.barrier)
        first = max(others, earliest)
        if type(nest) is MapNest and 0 <= conflict == first - 1 and others <= conflict:
            first = conflict
        for position in range(first, len(self.nodes)):
            kernel = self.nodes[position]
            if type(kernel) is not _Kernel or kernel.buffers + buffers > most:
                continue
            if position == conflict:
                joined = _join_conflicting(kernel, nest, accesses, self.target.fusion)
            else:
                awaited = reads if position == producer else None
                joined = _join(kernel, nest, awaited, self.kept, self.target)
            if joined is not None:
                # what was stored before it joined is forwarded, its own stores are not
                stored, left = joined.stores, joined.unforwarded
                forwarded = stored.keys() - writes - left
                self.loaded.update([resource for resource in reads if resource not in forwarded])
                kernel.sources.update(dict.fromkeys(node.sources))
                if node.within:
                    kernel.within.update(dict.fromkeys(node.within))
                kernel.buffers += buffers
                self._record(position, accesses)
                return
        within = dict.fromkeys(node.within)
        own = _Kernel([FusionBuilder(nest)], buffers, dict.fromkeys(node.sources), within)
        self.append(own, accesses)

    def _excludes_conflicts(self, position: int, nest: Nest, writes: frozenset[Resource]) -> bool:
        """Whether predicates exclude each conflict of a nest's writes with a kernel's nests."""
        if position < 0 or not nest.predicates:
            return False
        kernel = self.nodes[position]
        if type(kernel) is not _Kernel:
            return False
        for builder in kernel.nests:
            accesses = nest_accesses(builder.build())
            common = writes & (accesses.writes | accesses.reads)
            if common and not exclusive(builder.base.predicates, nest.predicates):
                return False
            if not all(isinstance(resource, Buffer) for resource in common):
                return False
        return True


def _latest(positions: dict[Resource, int], resources: Collection[Resource]) -> int:
    latest = -1
    for resource in resources:
        if resource in positions and positions[resource] > latest:
            latest = positions[resource]
    return latest


def _join(
    kernel: _Kernel,
    nest: Nest,
    awaited: frozenset[Resource] | None,
    kept: frozenset[Buffer],
    target: Target,
) -> FusionBuilder | None:
    """Add a nest to a kernel if it may join; the builder that it is a part of then.

    `awaited` is what the nest reads, if the kernel stores some of it.
    """
    policy, tiles = target.fusion, target.contractions.tiles
    if tiles and tiled_product(nest) is not None:
        return None  # with others in its loop, it would not be computed by tiles
    needed = [other for other in kernel.nests if other.stores_any(awaited)] if awaited else []
    # a nest that reads from two nests of one kernel cannot be fused with either
    for other in (needed or kernel.nests) if len(needed) < 2 else ():
        if isinstance(nest, ReduceNest) and differ(other.build(), nest, policy):
            continue
        if tiles and tiled_product(other.base) is not None:
            follows = type(nest) is MapNest and nest_size(nest) <= MAX_EPILOGUE
            if follows and other.fuse(nest, policy.parts):
                return other
            continue
        if other.fuse(nest, policy.parts) or _fuse_rows(other, nest, bool(needed), kept, policy):
            return other
    if awaited or len(kernel.nests) >= MAX_NESTS:
        return None
    if not _small(nest) and not any(_is_alternative(other.base, nest) for other in kernel.nests):
        return None
    of_tiles = tiles and any(tiled_product(other.base) for other in kernel.nests)
    if of_tiles and type(nest) is RowNest:
        return None  # which might have more threads than tiles
    if _is_serial(nest) or any(_is_serial(builder.base) for builder in kernel.nests):
        return None  # the kernel would take as long as the serial nest
    kernel.nests.append(FusionBuilder(nest))
    return kernel.nests[-1]


def _join_conflicting(
    kernel: _Kernel, nest: Nest, accesses: Accesses, policy: FusionPolicy
) -> FusionBuilder | None:
    """Add a nest to the nest of a kernel that stores or reads what it stores, if their points do
    not disturb each other.
    """
    reads, writes = accesses.reads, accesses.writes
    found = [b for b in kernel.nests if b.stores_any(reads | writes) or b.reads_any(writes)]
    return found[0] if len(found) == 1 and found[0].fuse(nest, policy.parts) else None


def _is_alternative(first: Nest, second: Nest) -> bool:
    """Whether two nests of one space exclude each other: only one of them does its work."""
    return first.space == second.space and exclusive(first.predicates, second.predicates)


def _is_serial(nest: Nest) -> bool:
    return (
        isinstance(nest, ScatterNest) and nest.repeats > 0 and not (nest.any_order or nest.grouped)
    )


def _small(nest: Nest) -> bool:
    if isinstance(nest, PrintNest):
        return sum(prod(array.shape) for array in nest.arguments) <= SMALL
    loop = nest.loop if isinstance(nest, (ReduceNest, RowNest)) else ()
    return prod((*nest.space, *loop)) <= SMALL


def _have_same_rows(first: Nest, second: Nest) -> bool:
    """Whether both have the same rows, and pointwise fusion has not been tried."""
    if isinstance(first, ReduceNest):
        return first.space != second.space and same_extents(first.space, second.space)
    return isinstance(first, RowNest) and same_extents(first.space, second.space)


def _fuse_rows(
    first: FusionBuilder,
    second: Nest,
    needed: bool,
    kept: frozenset[Buffer],
    policy: FusionPolicy,
) -> bool:
    """Fuse both as passes over rows, if that is possible.

    `needed` says that `second` reads what `first` stores.
    """
    if first.base.predicates != second.predicates:
        return False
    if not needed and not _have_same_rows(first.base, second):
        return False
    if first.stores_any(nest_writes(second)):
        return False
    nest = first.build()
    if nest_conditions(nest) & nest_conditions(second):
        return False
    result = fuse_rows(nest, second, policy, kept)
    if result is None:
        return False
    if second.predicates:
        result = replace(result, predicates=second.predicates)
    max_size = first.max_size + nest_size(second)
    if max_size > MAX_EXPRESSIONS:
        max_size = nest_size(result)
    if max_size > MAX_EXPRESSIONS:
        return False
    first.rebase(result, max_size)
    return True
