"""The interpreter: the function of a plan as Python that calls NumPy."""

from __future__ import annotations

from random import Random

from lowering.host.arena import Workspace
from lowering.host.code import Code, ExecutableMemory
from lowering.host.evaluation.programs import programs_of
from lowering.host.source.plan_function import PlanWriter
from lowering.plan.plan import Plan


def interpreted_code(
    plan: Plan, memory: ExecutableMemory, *, poison: bool, order: Random | None
) -> Code:
    """The code of a plan: a function that is written, and compiled by Python."""
    needed = Workspace()
    programs = programs_of(plan, memory.overlaps, needed)
    workspace = memory.allocate(needed.size)
    writer = PlanWriter(plan, programs, memory.arrays, workspace, order)
    body = writer.function((memory.arena, workspace) if poison else None)
    return Code(body, writer.copied, writer.section_times)
