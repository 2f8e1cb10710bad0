"""Stage: a node under construction, while nests are still merged and buffers still renamed.

    Block := Stage*
    Stage := KernelStage | NodeStage | BranchStage | LoopStage

A block is one region's, its stages in an order that respects dependences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lowering.plan.buffer import Buffer
from lowering.plan.construct import Construct
from lowering.plan.kernel import Nest
from lowering.plan.nest_analysis import nest_reads, nest_writes
from lowering.plan.nest_rewriting import rename_in_nest
from lowering.plan.nodes import Node
from tracegraph.ir.scalar import Axis, Expr, const
from tracegraph.user_source import Source

_NO_BUFFERS: frozenset[Buffer] = frozenset()


@dataclass(slots=True, eq=False)
class KernelStage:
    """Independent nests that one launch will run."""

    nests: list[Nest]
    sources: tuple[Source, ...] = ()


@dataclass(slots=True, eq=False)
class NodeStage:
    """A finished node that is not a kernel and has no body."""

    node: Node


@dataclass(slots=True, eq=False)
class BranchStage:
    """A conditional with one block per branch. `boolean`: two branches, the first for true."""

    condition: int
    branches: list[Block]
    boolean: bool
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


@dataclass(slots=True, eq=False)
class LoopStage:
    """A loop."""

    condition: int
    body: Block
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None


Stage = KernelStage | NodeStage | BranchStage | LoopStage


@dataclass(slots=True, eq=False)
class Block:
    """The stages of one region and the scratch buffers that belong to it."""

    stages: list[Stage] = field(default_factory=list)
    owned: set[Buffer] = field(default_factory=set)


def blocks(stage: Stage) -> Sequence[Block]:
    """The blocks inside a stage."""
    if type(stage) is KernelStage:  # most are
        return ()
    match stage:
        case BranchStage(branches=branches):
            return branches
        case LoopStage(body=body):
            return (body,)
    return ()


@lru_cache(maxsize=1024)
def space_index(space: tuple[int, ...], first: int = 0) -> tuple[Expr, ...]:
    """The index of a point, by axis numbers from `first`; 0 along axes of one element."""
    return tuple(
        const(0) if extent == 1 else Axis.make(first + number, extent)
        for number, extent in enumerate(space)
    )


# -- what a stage touches
# -----------------------------------------------------------------------------


def stage_reads(stage: Stage) -> frozenset[Buffer]:
    """Buffers that a stage reads, bodies included."""
    if type(stage) is KernelStage and len(stage.nests) == 1:  # most are
        return nest_reads(stage.nests[0])
    match stage:
        case KernelStage(nests=nests):
            return _NO_BUFFERS.union(*map(nest_reads, nests))
        case NodeStage(node=node):
            return node.reads
    return _NO_BUFFERS.union(*[stage_reads(s) for b in blocks(stage) for s in b.stages])


def stage_writes(stage: Stage) -> frozenset[Buffer]:
    """Buffers that a stage writes, bodies included."""
    if type(stage) is KernelStage and len(stage.nests) == 1:
        return nest_writes(stage.nests[0])
    match stage:
        case KernelStage(nests=nests):
            return _NO_BUFFERS.union(*map(nest_writes, nests))
        case NodeStage(node=node):
            return node.writes
    return _NO_BUFFERS.union(*[stage_writes(s) for b in blocks(stage) for s in b.stages])


def walk(block: Block) -> Iterator[Stage]:
    """Every stage of a block and of the blocks inside."""
    for stage in block.stages:
        yield stage
        for inner in blocks(stage):
            yield from walk(inner)


# -- rewriting
# ----------------------------------------------------------------------------------------


def rename(block: Block, names: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers throughout a block, bodies included."""
    block.owned -= names.keys()
    for stage in block.stages:
        rename_in_stage(stage, names)


def rename_in_stage(stage: Stage, names: Mapping[Buffer, Buffer]) -> None:
    """Replace buffers in one stage, bodies included."""
    match stage:
        case KernelStage():
            stage.nests = [rename_in_nest(n, names) for n in stage.nests]
        case NodeStage():
            stage.node = stage.node.with_buffers(names)
        case _:
            for inner in blocks(stage):
                rename(inner, names)
