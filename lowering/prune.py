"""Removing stores that nothing reads, once forwarding has made them useless."""

from __future__ import annotations

from dataclasses import replace

from lowering.buffer import Buffer
from lowering.kernel import MapNest, Nest, PrintNest, ReduceNest, Store
from lowering.stage import Block, KernelStage, blocks, stage_reads, walk


def prune(block: Block) -> None:
    """Drop stores to scratch that is never read, then what only they needed, to the end."""
    while True:
        read = set().union(*(stage_reads(s) for s in walk(block) if isinstance(s, KernelStage)))
        read |= {b for s in walk(block) if not blocks(s) for b in stage_reads(s)}
        if not _prune(block, read):
            return


def _prune(block: Block, read: set[Buffer]) -> bool:
    changed = False
    for stage in block.stages:
        if isinstance(stage, KernelStage):
            kept = [n for n in (_without_dead(nest, read) for nest in stage.nests) if n is not None]
            changed |= any(a is not b for a, b in zip(kept, stage.nests, strict=False))
            changed |= len(kept) != len(stage.nests)
            stage.nests = kept
        for inner in blocks(stage):
            changed |= _prune(inner, read)
    block.stages = [s for s in block.stages if not isinstance(s, KernelStage) or s.nests]
    return changed


def _without_dead(nest: Nest, read: set[Buffer]) -> Nest | None:
    def alive(store: Store) -> bool:
        return store.buffer.space != "scratch" or store.buffer in read

    if isinstance(nest, PrintNest):
        return nest
    if not isinstance(nest, MapNest | ReduceNest):
        return nest if alive(nest.store) else None
    stores = tuple(filter(alive, nest.stores))
    if not stores and not nest.signals:
        return None
    return nest if len(stores) == len(nest.stores) else replace(nest, stores=stores)
