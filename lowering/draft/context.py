"""Context: counters and registries of a whole Plan while its regions are built one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.nests.buffer import Buffer, Space
from lowering.plan.nodes import MemcpyNode
from lowering.plan.target.target import Costs, OperandForm, Target
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.program import Eqn
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor

_T = TypeVar("_T")


@dataclass(slots=True)
class Context:
    """Counters of buffers and conditions, registries of effects, and inputs copied to scratch.

    `rules` has the planning rules by the name of the op: functions of the `RegionBuilder` and the
    equation. Without `fusion`, each equation that computes anything has a kernel of its own.
    `sources` is the most operands of an op that selects elements by position, as of `concatenate`.
    `barriers` counts those behind which inputs are read again; `scratch_copies` has the copies of
    inputs by the input and the number of barriers before. `operands` is the form in which all
    products and Fourier transforms get theirs, None for what the policy says.
    """

    target: Target
    rules: Mapping[str, Callable[[Any, Eqn], None]]
    fusion: bool = True
    operands: OperandForm | None = None
    counts: dict[Space, int] = field(default_factory=dict)
    conditions: int = 0
    sources: int = 0
    monitors: list[Monitor] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    prints: list[PrintFormat] = field(default_factory=list)
    callbacks: list[HostFunction] = field(default_factory=list)
    barriers: int = 0
    scratch_copies: dict[tuple[Buffer, int], Buffer] = field(default_factory=dict)

    @property
    def costs(self) -> Costs:
        """The costs of the target."""
        return self.target.costs

    def buffer(self, space: Space, type_: ArrayType) -> Buffer:
        """A new buffer."""
        number = self.counts.get(space, 0)
        self.counts[space] = number + 1
        return Buffer(space, number, type_.strong() if type_.weak else type_)

    def give_back(self, buffers: Sequence[Buffer]) -> None:
        """Forget the newest buffers, which nothing uses: their numbers are those of the next."""
        for buffer in reversed(buffers):
            self.counts[buffer.space] -= 1
            assert buffer.number == self.counts[buffer.space], "not the newest buffer"

    def condition(self) -> int:
        """A new condition."""
        self.conditions += 1
        return self.conditions - 1

    def is_movable(self, buffer: Buffer) -> bool:
        """Whether each call may bind another address, which library calls are not given."""
        return buffer.space in ("input", "output") and not self.costs.updates_libraries

    def scratch_copy_of(self, buffer: Buffer) -> Buffer:
        """The scratch copy of an input, at the same address for all calls. Behind a barrier it is
        another one.
        """
        key = buffer, self.barriers
        if key not in self.scratch_copies:
            self.scratch_copies[key] = self.buffer("scratch", buffer.type)
        return self.scratch_copies[key]

    def pass_barrier(self) -> None:
        """Behind this, others may have written to inputs."""
        self.barriers += 1

    def copies(self) -> list[FinishedNode]:
        """The nodes that copy inputs to scratch."""
        return [
            FinishedNode(MemcpyNode(copy, source, is_scratch_copy=True))
            for (source, _), copy in self.scratch_copies.items()
        ]


def number(known: list[_T], item: _T) -> int:
    """The position of an item in a registry, which it is added to if it is new."""
    if item not in known:
        known.append(item)
    return known.index(item)
