"""Stage: a node under construction, while nests are still fused and buffers still renamed.

    Block := Stage*
    Stage := KernelStage | NodeStage | BranchStage | LoopStage

A block has the stages of one region, in an order that respects dependences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeGuard

from lowering.plan.construct import Construct, Path
from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest
from lowering.plan.nests.rewriting import rename_in_nest
from lowering.plan.nodes import Node
from lowering.plan.target.scope import Scope
from tracegraph.user_source import Source

_NO_BUFFERS: frozenset[Buffer] = frozenset()


@dataclass(slots=True, eq=False)
class KernelStage:
    """Independent nests of one launch. `within` is as in `Node`."""

    nests: list[Nest]
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()


@dataclass(slots=True, eq=False)
class NodeStage:
    """A finished node that is not a kernel and has no body."""

    node: Node


@dataclass(slots=True, eq=False)
class BranchStage:
    """A conditional with one block per branch. `boolean`: two branches, the first for true.

    `time` is the estimate of scheduling, in µs.
    """

    condition: int
    branches: list[Block]
    boolean: bool
    construct: Construct
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()
    time: float = 0


Copy = list["Stage | None"]
"""A copy of a body: a copy of each of its stages, None if that has nothing to do."""


class WrittenOut(NamedTuple):
    """Copies of a body that run one after the other, and the stages that follow the last one."""

    copies: list[Copy]
    closing: list[Stage]

    @property
    def stages(self) -> list[Stage]:
        """All stages, in order."""
        done = [stage for copy in self.copies for stage in copy if stage is not None]
        return [*done, *self.closing]


class Unrolled(Protocol):
    """How a body is unrolled."""

    def written_out(self) -> WrittenOut:
        """The copies of the body's first stages; its other stages stand for the closing ones."""


@dataclass(slots=True, eq=False)
class LoopStage:
    """A loop. If it is unrolled, `unrolled` makes the copies of its body.

    A loop in one kernel, or inside of one, has the flag `entry`: whether it is entered. The
    outermost one has the `scope` of the kernel. `time` is the estimate of scheduling, in µs.
    """

    condition: int
    body: Block
    construct: Construct
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()
    unrolled: Unrolled | None = None
    entry: Buffer | None = None
    scope: Scope | None = None
    time: float = 0


Stage = KernelStage | NodeStage | BranchStage | LoopStage


def is_written_out(stage: Stage) -> TypeGuard[LoopStage]:
    """Whether a stage is a loop without a node: its steps stand in the graph one by one."""
    return isinstance(stage, LoopStage) and stage.construct.copies == 0


@dataclass(slots=True, eq=False)
class Block:
    """The stages of one region and the scratch buffers that it owns.

    `sinks` are the buffers of its results. In a loop's body, `carries` maps the buffer of each new
    carry to the buffer from which the next step reads it. `resident` scratch shares its memory with
    nothing in the block.
    """

    stages: list[Stage] = field(default_factory=list)
    owned: set[Buffer] = field(default_factory=set)
    sinks: Sequence[Buffer] = ()
    carries: Mapping[Buffer, Buffer] = field(default_factory=dict)
    resident: Set[Buffer] = frozenset()


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


# -- accesses --------------------------------------------------------------------------------------


def stage_reads(stage: Stage) -> frozenset[Buffer]:
    """Buffers that a stage reads, bodies included."""
    if type(stage) is KernelStage and len(stage.nests) == 1:  # most are
        return nest_reads(stage.nests[0])
    match stage:
        case KernelStage(nests=nests):
            return _NO_BUFFERS.union(*map(nest_reads, nests))
        case NodeStage(node=node):
            return node.reads
    inside = [stage_reads(s) for b in blocks(stage) for s in b.stages]
    return control_reads(stage).union(*inside)


def control_reads(stage: Stage) -> frozenset[Buffer]:
    """Buffers that a loop or branch itself reads, besides its bodies."""
    if isinstance(stage, LoopStage) and stage.entry is not None:
        return frozenset((stage.entry,))
    return _NO_BUFFERS


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
    """Every stage of a block and of the blocks inside it."""
    for stage in block.stages:
        yield stage
        for inner in blocks(stage):
            yield from walk(inner)


def without_empty(stages: Sequence[Stage]) -> list[Stage]:
    """The stages without kernels of no nests."""
    return [s for s in stages if not isinstance(s, KernelStage) or s.nests]


# -- rewriting -------------------------------------------------------------------------------------


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
            if isinstance(stage, LoopStage) and stage.entry is not None:
                stage.entry = names.get(stage.entry, stage.entry)
            for inner in blocks(stage):
                rename(inner, names)
