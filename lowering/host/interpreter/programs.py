"""The programs of a plan's kernels: the instructions of each nest, and where temporaries are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lowering.host.arena import Workspace
from lowering.host.code import Overlaps
from lowering.host.interpreter.hazards import copy_overwritten
from lowering.host.interpreter.nest_program import NestProgram, place_temporaries
from lowering.host.interpreter.nests import evaluate
from lowering.host.interpreter.print_nests import print_evaluators
from lowering.plan.nests.kernel import Kernel, PrintNest
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.plan import Plan

Programs = Mapping[KernelNode, Sequence[NestProgram]]


def programs_of(plan: Plan, overlaps: Overlaps, workspace: Workspace) -> Programs:
    """The programs of all kernels, bodies included; `workspace` grows to what they need."""
    return {
        node: [
            replace(program, starts=place_temporaries(program.instructions, workspace))
            for program in kernel_programs(node.kernel, plan, overlaps)
        ]
        for node in walk(plan.graph)
        if isinstance(node, KernelNode)
    }


def kernel_programs(kernel: Kernel, plan: Plan, overlaps: Overlaps) -> list[NestProgram]:
    """The programs of a kernel's nests in order, temporaries without places; prints come last."""
    prints = [nest for nest in kernel.nests if isinstance(nest, PrintNest)]
    others = [nest for nest in kernel.nests if not isinstance(nest, PrintNest)]
    programs = [
        NestProgram(
            tuple(copy_overwritten(evaluate(nest, plan).instructions, overlaps)), nest.predicates
        )
        for nest in others
        if 0 not in nest.space
    ]
    programs += [
        NestProgram(tuple(run.instructions), nest.predicates)
        for nest in prints
        for run in print_evaluators(nest, plan)
    ]
    return programs
