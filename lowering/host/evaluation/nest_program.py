"""The program of a group of nests: NumPy calls, and temporaries placed by liveness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from operator import is_
from typing import Self

from lowering.host.arena import Workspace
from lowering.host.evaluation.instructions import (
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
)
from lowering.plan.nests.analysis import nest_loads, nest_stores
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Nest, Predicate, ReduceNest, RowNest, Store
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True, slots=True)
class NestGroup:
    """Nests over the same extents, under the same predicates, that one evaluation computes.

    `order`: the axes of the nests from the outermost to the innermost; None as they are.
    `overwritten`: buffers whose other elements later groups of the kernel write.
    """

    nests: tuple[Nest, ...]
    order: tuple[int, ...] | None = None
    overwritten: frozenset[Buffer] = frozenset()

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the first nest's axes, as the nest has them."""
        return extents_of(self.nests[0])

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """They must hold for the nests to run."""
        return self.nests[0].predicates


def extents_of(nest: Nest) -> tuple[int, ...]:
    """The extents of a nest's space and loop."""
    return (*nest.space, *(nest.loop if isinstance(nest, ReduceNest | RowNest) else ()))


def accesses_of(nest: Nest) -> list[Load | Store]:
    """The loads and stores of a nest."""
    return [*nest_loads(nest), *nest_stores(nest)]


@dataclass(frozen=True, slots=True, eq=False)
class NestProgram:
    """The instructions of a group, in order, and where their temporaries start in the workspace."""

    instructions: tuple[Instruction, ...]
    extents: tuple[int, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    overwritten: frozenset[Buffer] = frozenset()
    starts: Mapping[Temporary, int] = field(default_factory=dict)

    def with_instructions(self, instructions: Sequence[Instruction]) -> Self:
        """The program with other instructions; itself if they are the same."""
        if len(instructions) == len(self.instructions) and all(
            map(is_, instructions, self.instructions)
        ):
            return self
        return replace(self, instructions=tuple(instructions))

    def shape(self, value: NumpyValue) -> tuple[int, ...]:
        """The shape that memory is needed for."""
        return value.shape

    @property
    def pinned(self) -> Sequence[Instruction]:
        """Instructions whose outputs are read until the end of the program."""
        return ()


InPlace = Callable[[Instruction, Temporary], bool]
"""Whether an instruction may write its output over an input that is read for the last time."""


def never_in_place(instruction: Instruction, value: Temporary) -> bool:
    """Each temporary has memory of its own while it is live."""
    return False


def place_temporaries(
    program: NestProgram, workspace: Workspace, in_place: InPlace = never_in_place
) -> NestProgram:
    """The program with its temporaries placed: liveness, then first fit.

    Memory is free again after the last use.
    """
    order = program.instructions
    last = {value: i for i, made in enumerate(order) for value in _temporaries(made)}
    for made in program.pinned:
        if isinstance(made.output, Temporary):
            last[made.output] = len(order)
    starts: dict[Temporary, int] = {}
    for position, made in enumerate(order):
        dead = [v for v in dict.fromkeys(_temporaries(made)) if last[v] == position]
        if isinstance(made.output, Temporary):
            reused = next((v for v in dead if in_place(made, v)), None)
            if reused is not None:
                starts[made.output] = starts[reused]
                dead.remove(reused)
            else:
                size = prod(program.shape(made.output)) * made.output.dtype.itemsize
                starts[made.output] = workspace.allocate(size)
            if made.output not in last:
                dead.append(made.output)
        for value in dead:
            workspace.free(starts[value])
    for value in {v for v, at in last.items() if at == len(order)}:
        workspace.free(starts[value])
    return replace(program, starts=starts)


def _temporaries(instruction: Instruction) -> Iterator[Temporary]:
    """The temporaries that an instruction reads."""
    for value in instruction.inputs:
        if isinstance(value, Temporary):
            yield value
        elif isinstance(value, ReversedTemporary):
            yield value.base
