"""The program of a nest: NumPy calls, and temporaries placed by liveness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from lowering.host.arena import Workspace
from lowering.host.interpreter.instructions import Instruction, Temporary
from lowering.plan.nests.kernel import Nest, Predicate, ReduceNest, RowNest
from tracegraph.generated.dataclass import dataclass


def extents_of(nest: Nest) -> tuple[int, ...]:
    """The extents of a nest's space and loop."""
    return (*nest.space, *(nest.loop if isinstance(nest, ReduceNest | RowNest) else ()))


@dataclass(frozen=True, slots=True, eq=False)
class NestProgram:
    """The instructions of a nest, in order, and where their temporaries start in the workspace.

    They run if all `predicates` hold.
    """

    instructions: tuple[Instruction, ...]
    predicates: tuple[Predicate, ...] = ()
    starts: Mapping[Temporary, int] = field(default_factory=dict)


def place_temporaries(
    instructions: Sequence[Instruction], workspace: Workspace
) -> dict[Temporary, int]:
    """Where the temporaries start: liveness, then first fit.

    Memory is free again after the last use.
    """
    last = {value: i for i, made in enumerate(instructions) for value in _temporaries(made)}
    starts: dict[Temporary, int] = {}
    for position, made in enumerate(instructions):
        dead = [v for v in dict.fromkeys(_temporaries(made)) if last[v] == position]
        if isinstance(made.output, Temporary):
            starts[made.output] = workspace.allocate(made.output.nbytes)
            if made.output not in last:
                dead.append(made.output)
        for value in dead:
            workspace.free(starts[value])
    return starts


def _temporaries(instruction: Instruction) -> Iterator[Temporary]:
    """The temporaries that an instruction reads."""
    return (value for value in instruction.inputs if isinstance(value, Temporary))
