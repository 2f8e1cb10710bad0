"""Conditional nodes: branches and loops of a Plan's graph, each with graphs as bodies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, Literal, Self

from lowering.plan.construct import Construct, Path
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Graph, Names, Node
from tracegraph.inspection.palette import Tone
from tracegraph.ir.record import record, replace
from tracegraph.user_source import Source

ConditionalKind = Literal["if_else", "switch", "while"]


class ConditionalNode(Node):
    """Base of nodes with bodies that run depending on a condition.

    The condition, an integer, is set by a `SetCondition` of a kernel: before the node, and in the
    body of a loop.
    """

    __slots__ = ()

    kind: ClassVar[ConditionalKind]
    tone: ClassVar[Tone] = "branch"
    condition: int

    @property
    def noun(self) -> str:
        return "a branch"

    @property
    def graph_nodes(self) -> tuple[str, ...]:
        host_driven = self.construct is not None and self.construct.host_driven
        return () if host_driven else ("conditional",)

    @property
    def title(self) -> str:
        return self.kind.replace("_", " / ")

    @property
    def text(self) -> str:
        return f"{self.kind.partition('_')[0]} condition[{self.condition}]"


@record
class IfElseNode(ConditionalNode):
    """Runs `then` if the condition is non-zero, `otherwise` if not."""

    kind: ClassVar[ConditionalKind] = "if_else"

    condition: int
    then: Graph
    otherwise: Graph
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None
    within: tuple[Path, ...] = ()

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.then, self.otherwise

    @property
    def body_labels(self) -> tuple[str, ...]:
        return "then", "else"

    def with_bodies(self, graphs: Sequence[Graph]) -> Self:
        return replace(self, then=graphs[0], otherwise=graphs[1])


@record
class SwitchNode(ConditionalNode):
    """Runs the branch whose number the condition holds."""

    kind: ClassVar[ConditionalKind] = "switch"

    condition: int
    branches: tuple[Graph, ...]
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None
    within: tuple[Path, ...] = ()

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return self.branches

    @property
    def body_labels(self) -> tuple[str, ...]:
        return tuple(f"case {number}" for number in range(len(self.branches)))

    def with_bodies(self, graphs: Sequence[Graph]) -> Self:
        return replace(self, branches=tuple(graphs))


@record
class WhileNode(ConditionalNode):
    """Runs the body as long as the condition is non-zero.

    Inside of a kernel, the condition may be that of the flag `entry` at first.
    """

    kind: ClassVar[ConditionalKind] = "while"
    tone: ClassVar[Tone] = "loop"

    condition: int
    body: Graph
    sources: tuple[Source, ...] = ()
    construct: Construct | None = None
    within: tuple[Path, ...] = ()
    entry: Buffer | None = None

    @property
    def noun(self) -> str:
        return "a loop"

    @property
    def exclusive(self) -> Hashable:
        # side by side they may end in CUDA_ERROR_LAUNCH_FAILED, as those of several launches do:
        # see `lowering.cuda.streams.exclusive_use`
        return "loops"

    @property
    def reads(self) -> frozenset[Buffer]:
        return frozenset() if self.entry is None else frozenset((self.entry,))

    @property
    def text(self) -> str:
        entered = "" if self.entry is None else f", at first {self.entry}"
        return f"while condition[{self.condition}]{entered}"

    def with_buffers(self, names: Names) -> Self:
        entry = self.entry
        return replace(self, entry=None if entry is None else names.get(entry, entry))

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    @property
    def body_labels(self) -> tuple[str, ...]:
        return ("body",)

    def with_bodies(self, graphs: Sequence[Graph]) -> Self:
        return replace(self, body=graphs[0])
