"""Plans whose loops and branches are carried out in other ways than by a node each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from lowering.backends.cuda import TARGET as CUDA
from lowering.host.executable import HostExecutable
from lowering.legalization.legalize import legalize
from lowering.lower import lower
from lowering.plan.plan import Plan
from lowering.plan.target.features import Features
from lowering.plan.target.overrides import Choices
from tests.corpus import CASES, loops, nesting
from tests.helpers.running import traced
from tracegraph import tree
from tracegraph.staging.stages import Lowered, Traced
from tracegraph.testing.ways import CONDITIONAL, LOWERINGS, using

BRANCHING = [
    name
    for name, case in CASES.items()
    if case.function.__module__ in (loops.__name__, nesting.__name__)
]
"""The programs of the corpus with loops or branches."""

FORCED = {
    **{name: way.chosen for name, way in LOWERINGS.items() if way.chosen != CONDITIONAL},
    "as_estimated": Choices(),
}
"""The choices of schedules that `tracegraph.testing` makes, and that of the cost model; without
that of a node for each loop and branch, from which features are taken."""


def unscheduled(stage: Lowered | Traced) -> Plan:
    """The program of a stage as for a GPU, with a node for each loop and branch."""
    return scheduled(stage, CONDITIONAL)


def scheduled(stage: Lowered | Traced, chosen: Choices) -> Plan:
    """The program of a stage as for a GPU, its loops and branches run in the ways chosen."""
    program = stage.traced if isinstance(stage, Lowered) else stage
    donated = program.signature.donated_leaves(program.key.structure)
    with using(chosen):
        return lower(program.optimized, CUDA, donated)


def on_host(chosen: Choices, features: Features | None = None) -> Callable[..., Any]:
    """Runs such a Plan on the host twice: in memory that nobody has written, in random orders.

    With `features`, it is made fit for a device that has no others.
    """
    return lambda function, *arguments: planned_once(chosen, features, function, *arguments)(
        *arguments
    )


def planned_once(
    chosen: Choices, features: Features | None, function: Any, *arguments: Any
) -> Callable[..., Any]:
    """The same for a function that takes any arguments of the types of these."""
    stage = traced(function, *arguments)
    plan = scheduled(stage, chosen)
    if features is not None:
        plan = legalize(plan, features)
    executables = [HostExecutable(plan, poison=True, order=order) for order in (None, Random(0))]

    def run(*arguments: Any) -> Any:
        first, second = (executable(tree.leaves(arguments)) for executable in executables)
        assert [x.tobytes() for x in first] == [x.tobytes() for x in second]
        return tree.unflatten(stage.out_structure, first)

    return run
