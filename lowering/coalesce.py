"""Sharing memory between a value and the one it replaces: carries and updated arrays in place.

Buffer `new` may take the memory of `old` if, in order of execution, nothing reads `old` after the
first store to `new`, and the kernel that makes that store reads of `old`, at each point, only the
element that it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowering.buffer import Buffer
from lowering.fuse import is_own_point
from lowering.kernel import MapNest, Nest, ReduceNest, Store
from lowering.stage import (
    Block,
    BranchStage,
    KernelStage,
    Stage,
    blocks,
    loads,
    nest_reads,
    nest_roots,
    nest_stores,
    nest_writes,
    rename,
    space_index,
    stage_reads,
    stage_writes,
)
from tracegraph.scalar import Load


def place_carries(body: Block, carries: Mapping[Buffer, Buffer]) -> None:
    """Make a loop body leave each new value (key) where the next trip reads it (value).

    In place where that is safe; the others move at the end of the body, same shapes in one nest,
    which reads all before it writes: permuted carries need no further memory.
    """
    moves: list[tuple[Buffer, Buffer]] = []
    for new, carry in carries.items():
        if can_share(body, new, carry):
            rename(body, {new: carry})
        else:
            moves.append((new, carry))
    drop_self_copies(body)
    by_shape: dict[tuple[int, ...], list[Store]] = {}
    for new, carry in moves:
        index = space_index(carry.type.shape)
        store = Store(carry, index, Load.make(new, index))
        by_shape.setdefault(carry.type.shape, []).append(store)
    nests: list[Nest] = [MapNest(shape, tuple(stores)) for shape, stores in by_shape.items()]
    if any(all(nest.space) for nest in nests):
        body.stages.append(KernelStage([n for n in nests if all(n.space)]))


def drop_copies(block: Block, sinks: Sequence[Buffer]) -> None:
    """Drop plain copies of arrays that are not needed any more: the copy takes their memory.

    This is what lets an updated array, and a result, be written where it is. `sinks` keep their
    names.
    """
    kept = set(sinks)
    for stage in list(block.stages):
        pair = _copied(stage)
        if pair is None:
            continue
        new, old = pair
        if old not in block.owned or old in kept or not can_share(block, new, old):
            continue
        if new in block.owned or (new in kept and _only_kernels(block, new, old)):
            rename(block, {old: new})
    drop_self_copies(block)


def _only_kernels(block: Block, new: Buffer, old: Buffer) -> bool:
    """A call's output moves: library calls and bodies had better not know its address."""
    return new.space == "scratch" or not any(
        old in stage_reads(s) | stage_writes(s)
        for s in block.stages
        if not isinstance(s, KernelStage)
    )


def _copied(stage: Stage) -> tuple[Buffer, Buffer] | None:
    """(target, source) if the stage is one plain copy of a buffer."""
    match stage:
        case KernelStage(nests=[MapNest(stores=(store,), signals=()) as nest]):
            value = store.value
            if isinstance(value, Load) and is_own_point(value, nest.space):
                whole = value.buffer.type == store.buffer.type and store.buffer.type.shape
                return (store.buffer, value.buffer) if whole == nest.space else None
    return None


def can_share(block: Block, new: Buffer, old: Buffer) -> bool:
    """Whether `new` may live in the memory of `old` throughout a block."""
    if new.type != old.type:
        return False
    stages = block.stages
    first = next((k for k, s in enumerate(stages) if new in stage_writes(s)), None)
    if first is None:
        return False
    if any(old in stage_reads(s) for s in stages[first + 1 :]):
        return False
    if any(old in stage_writes(s) for s in stages[first:]):
        return False
    return _reads_in_place(stages[first], new, old)


def _reads_in_place(stage: Stage, new: Buffer, old: Buffer) -> bool:
    if old not in stage_reads(stage):
        return True
    match stage:
        case KernelStage(nests=nests):
            return all(
                _replaces_pointwise(nest, new, old) for nest in nests if old in nest_reads(nest)
            )
        case BranchStage(branches=branches):
            return all(_branch_shares(branch, new, old) for branch in branches)
    return False


def _branch_shares(branch: Block, new: Buffer, old: Buffer) -> bool:
    reads = any(old in stage_reads(s) for s in branch.stages)
    return not reads or can_share(branch, new, old)


def _replaces_pointwise(nest: Nest, new: Buffer, old: Buffer) -> bool:
    if not isinstance(nest, MapNest | ReduceNest) or new not in nest_writes(nest):
        return False
    if isinstance(nest, ReduceNest) and any(
        load.buffer is old for load in loads([a.value for a in nest.accumulators])
    ):
        return False
    own = space_index(nest.space)
    writes_own = all(s.indices == own for s in nest_stores(nest) if s.buffer is new)
    reads_own = all(
        is_own_point(load, nest.space) for load in loads(nest_roots(nest)) if load.buffer is old
    )
    return writes_own and reads_own


def drop_self_copies(block: Block) -> None:
    """Remove stores that write to an element what it holds, and what is empty then."""
    for stage in block.stages:
        if isinstance(stage, KernelStage):
            stage.nests = [n for n in map(_without_self_copies, stage.nests) if n is not None]
        for inner in blocks(stage):
            drop_self_copies(inner)
    block.stages = [s for s in block.stages if not isinstance(s, KernelStage) or s.nests]


def _without_self_copies(nest: Nest) -> Nest | None:
    if not isinstance(nest, MapNest):
        return nest
    kept = tuple(s for s in nest.stores if not _is_self_copy(s, nest.space))
    if not kept and not nest.signals:
        return None
    return nest if len(kept) == len(nest.stores) else MapNest(nest.space, kept, nest.signals)


def _is_self_copy(store: Store, space: Sequence[int]) -> bool:
    value = store.value
    return (
        isinstance(value, Load)
        and value.buffer is store.buffer
        and value.guard is None
        and store.guard is None
        and value.indices == store.indices
    )
