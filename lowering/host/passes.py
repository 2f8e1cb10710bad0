"""The steps from a kernel to its lines of Python, and the tuning passes that join in.

Each step has a plain default. `TRACEGRAPH_HOST=plain` keeps all defaults, so that a plan
is run in the simplest way there is: for debugging, and as the reference for tuning. Otherwise the
passes of `lowering.host.tuning` join in, which only make NumPy calls cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from lowering.host.arena import Workspace
from lowering.host.choice import chosen_kind
from lowering.host.evaluation.evaluate import Evaluator, LayoutRule, Rule, row_major
from lowering.host.evaluation.hazards import Overlaps, copy_overwritten
from lowering.host.evaluation.instructions import Instruction
from lowering.host.evaluation.nest_program import (
    InPlace,
    NestGroup,
    NestProgram,
    never_in_place,
    place_temporaries,
)
from lowering.host.evaluation.nests import evaluate
from lowering.host.source.array_names import Frame
from lowering.host.source.call_emitter import NestWriter
from lowering.host.source.print_nests import print_evaluators
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, PrintNest
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.plan import Plan

Programs = Mapping[KernelNode, Sequence[NestProgram]]

PassKind = Literal[
    "groups", "expressions", "layout", "instructions", "in place", "names", "calls", "results"
]

GroupPass = Callable[[list[NestGroup], Overlaps], list[NestGroup]]
InstructionPass = Callable[[NestProgram, Overlaps], NestProgram]
ResultPass = Callable[[Plan, Programs], Mapping[Instruction, Buffer]]


@dataclass(frozen=True, slots=True)
class TuningPass:
    """A tuning pass: its name, what it does, and the function that is called.

    | kind | the function |
    |---|---|
    | groups | `GroupPass`: rewrites, splits, or joins groups of nests |
    | expressions | `Rule`: a cheaper form of one expression |
    | layout | makes the `LayoutRule` of an evaluator: the memory order of temporaries |
    | instructions | `InstructionPass`: rewrites the program of a group |
    | in place | `InPlace`: whether a temporary may take the memory of an input |
    | names | a subclass of `Frame`: how views and numbers are written |
    | calls | a subclass of `NestWriter`: how instructions are written |
    | results | `ResultPass`: the instructions that make a result of the plan themselves |
    """

    name: str
    effect: str
    kind: PassKind
    function: Callable[..., Any]


class Passes:
    """The steps with these passes; of passes of a kind that takes one function, the last counts."""

    def __init__(self, passes: Iterable[TuningPass] = ()) -> None:
        by_kind: dict[str, list[Any]] = {}
        for tuning_pass in passes:
            by_kind.setdefault(tuning_pass.kind, []).append(tuning_pass.function)
        self._groups: Sequence[GroupPass] = by_kind.get("groups", ())
        self._rules: Sequence[Rule] = by_kind.get("expressions", ())
        self._layout: Callable[[Evaluator], LayoutRule] = by_kind.get("layout", [row_major])[-1]
        self._instructions: Sequence[InstructionPass] = by_kind.get("instructions", ())
        self._in_place: InPlace = by_kind.get("in place", [never_in_place])[-1]
        self._results: Sequence[ResultPass] = by_kind.get("results", ())
        self.frame: type[Frame] = by_kind.get("names", [Frame])[-1]
        self.writer: type[NestWriter] = by_kind.get("calls", [NestWriter])[-1]
        self.evaluator = partial(Evaluator, rules=self._rules, layout=self._layout)

    def programs(self, plan: Plan, overlaps: Overlaps, workspace: Workspace) -> Programs:
        """The programs of all kernels, bodies included; `workspace` grows to what they need."""
        return {
            node: self.kernel_programs(node.kernel, plan, overlaps, workspace)
            for node in walk(plan.graph)
            if isinstance(node, KernelNode)
        }

    def kernel_programs(
        self, kernel: Kernel, plan: Plan, overlaps: Overlaps, workspace: Workspace
    ) -> list[NestProgram]:
        """The programs of a kernel's nests in order; prints come last."""
        return [
            place_temporaries(self.rewritten(program, overlaps), workspace, self._in_place)
            for program in self.evaluated(kernel, plan, overlaps)
        ]

    def evaluated(self, kernel: Kernel, plan: Plan, overlaps: Overlaps) -> list[NestProgram]:
        """The programs of a kernel's nests before instructions are rewritten."""
        prints = [nest for nest in kernel.nests if isinstance(nest, PrintNest)]
        others = [nest for nest in kernel.nests if not isinstance(nest, PrintNest)]
        groups = [NestGroup((nest,)) for nest in others if 0 not in nest.space]
        for group_pass in self._groups:
            groups = group_pass(groups, overlaps)
        programs: list[NestProgram] = []
        for group in groups:
            run = evaluate(group, plan, self.evaluator)
            instructions = tuple(copy_overwritten(run.instructions, overlaps))
            given = (run.extents, group.predicates, group.overwritten)
            programs.append(NestProgram(instructions, *given))
        for nest in prints:
            for run in print_evaluators(nest, plan, self.evaluator):
                made = tuple(run.instructions)
                programs.append(NestProgram(made, run.extents, nest.predicates))
        return programs

    def rewritten(self, program: NestProgram, overlaps: Overlaps) -> NestProgram:
        """The program after all passes on instructions."""
        for instruction_pass in self._instructions:
            program = instruction_pass(program, overlaps)
        return program

    def results(self, plan: Plan, programs: Programs) -> Mapping[Instruction, Buffer]:
        """The instructions whose call makes a result of the plan, and which one."""
        return {made: b for result in self._results for made, b in result(plan, programs).items()}


def chosen_passes() -> Passes:
    """The passes that TRACEGRAPH_HOST asks for: all if it is not set, else none.

    Raises:
        ValueError: it has an unknown value.
    """
    if chosen_kind() != "tuned":
        return Passes()
    # the one import of tuning: `plain` must not even load it, and tuning imports this package
    from lowering.host.tuning.passes import PASSES

    return Passes(PASSES)
