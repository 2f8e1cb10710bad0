"""The interpreter: a plan as a list of calls of NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from lowering.host.arena import Array, Workspace
from lowering.host.code import Body, Code, ExecutableMemory, with_bars
from lowering.host.interpreter.frame import Frame
from lowering.host.interpreter.programs import Programs, programs_of
from lowering.host.interpreter.steps import GraphSteps
from lowering.host.section_times import SectionTimes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan


def interpreted_code(
    plan: Plan, memory: ExecutableMemory, *, poison: bool, order: Random | None
) -> Code:
    """The code of a plan as a function that runs its steps."""
    needed = Workspace()
    programs = programs_of(plan, memory.overlaps, needed)
    workspace = memory.allocate(needed.size)
    poisoned = (memory.arena, workspace) if poison else None
    return interpreted(plan, programs, memory.arrays, workspace, order, poisoned)


def interpreted(
    plan: Plan,
    programs: Programs,
    memory: Mapping[Buffer, Array],
    workspace: Array,
    order: Random | None = None,
    poisoned: Sequence[Array] | None = None,
) -> Code:
    """The code of a plan whose kernels have these programs, with temporaries in `workspace`.

    `memory` has the arrays of scratch and constants. Before each call `poisoned` is filled with
    `POISON`, and so are the results.
    """
    frame, times = Frame(plan, memory), SectionTimes()
    steps = GraphSteps(programs, frame, workspace, order, times).of_graph(plan.graph)
    body: Body = frame.function(steps, poisoned)
    return Code(with_bars(plan, body), frame.copied, times)
