"""Dead store elimination: stores to scratch that nothing reads, mostly of forwarded values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from lowering.draft.draft import Draft
from lowering.draft.draft_nodes import (
    Block,
    DraftKernel,
    blocks,
    control_reads,
    node_reads,
    walk,
    without_empty,
)
from lowering.plan.nests.analysis import nest_reads, nest_stores, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, Pass, PrintNest, ReduceNest, RowNest, Store
from tracegraph.ir.record import replace


def drop_dead_stores(draft: Draft) -> None:
    """Drop stores to scratch that is never read, then stores that only they read, and so on."""
    block = draft.block
    readers: dict[Buffer, int] = {}
    writers: dict[Buffer, list[DraftKernel]] = {}
    for node in walk(block):
        if isinstance(node, DraftKernel):
            for nest in node.nests:
                _count(readers, nest_reads(nest))
                for buffer in nest_writes(nest):
                    writers.setdefault(buffer, []).append(node)
        else:
            reads = control_reads(node) if blocks(node) else node_reads(node)
            _count(readers, reads)
    dead = [b for b in writers if b.space == "scratch" and b not in readers]
    pending = [node for buffer in dead for node in writers[buffer]]
    while pending:
        for buffer in _prune_kernel(pending.pop(), readers):
            readers[buffer] -= 1
            if not readers[buffer]:
                pending.extend(writers.get(buffer, ()))
    _drop_empty(block)


def _count(readers: dict[Buffer, int], reads: Collection[Buffer]) -> None:
    for buffer in reads:
        readers[buffer] = readers.get(buffer, 0) + 1


def _prune_kernel(node: DraftKernel, readers: Mapping[Buffer, int]) -> list[Buffer]:
    """Drop the kernel's dead stores; the buffers that it reads no more, once for each nest."""
    unread: list[Buffer] = []
    kept: list[Nest] = []

    def live(store: Store) -> bool:
        return store.buffer.space != "scratch" or readers.get(store.buffer, 0) > 0

    for nest in node.nests:
        pruned = without_dead(nest, live)
        if pruned is not None:
            kept.append(pruned)
        if pruned is not nest:
            unread.extend(nest_reads(nest) - (nest_reads(pruned) if pruned else frozenset()))
    node.nests = kept
    return unread


def _drop_empty(block: Block) -> None:
    block.nodes = without_empty(block.nodes)
    for node in block.nodes:
        for inner in blocks(node):
            _drop_empty(inner)


def without_dead(nest: Nest, live: Callable[[Store], bool]) -> Nest | None:
    """The nest with its live stores, or None if it does nothing then."""
    if isinstance(nest, PrintNest):
        return nest
    if not isinstance(nest, (MapNest, ReduceNest, RowNest)):
        return nest if live(nest.store) else None
    stores = tuple(filter(live, nest.stores))
    if isinstance(nest, MapNest):  # most are
        if len(stores) == len(nest.stores):
            return nest
        pruned = MapNest(nest.space, stores, nest.signals, nest.predicates)
        return pruned if stores or nest.signals else None
    if all(map(live, nest_stores(nest))):
        return nest
    if isinstance(nest, RowNest):
        passes = tuple([Pass(p.accumulators, tuple(filter(live, p.stores))) for p in nest.passes])
        nest = RowNest(nest.space, nest.loop, passes, stores, nest.signals, nest.predicates)
    else:
        nest = replace(nest, stores=stores)
    return nest if nest_stores(nest) or nest.signals else None
