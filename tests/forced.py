"""Plans whose loops and branches are carried out in other ways than by a node each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from running import lowered

from lowering import choices
from lowering.choices import Choices
from lowering.costs import CUDA
from lowering.host.executable import HostExecutable
from lowering.plan import Plan
from lowering.schedule import schedule
from tracegraph import tree

FORCED = {
    "predicated": Choices(branches="predicated", loops="conditional"),
    "unrolled": Choices(branches="conditional", loops="unrolled", unroll=3),
    "both": Choices(branches="predicated", loops="unrolled", unroll=3),
    "as_estimated": Choices(),
}


def scheduled(plan: Plan, chosen: Choices) -> Plan:
    """A Plan as a GPU would run it, in the ways chosen."""
    with choices.override(chosen.branches, chosen.loops, chosen.unroll):
        return schedule(plan, CUDA)


def on_host(chosen: Choices, runs: int = 2) -> Callable[..., Any]:
    """Runs such a Plan on the host: in memory that nobody has written, in random orders."""

    def run(function: Any, *arguments: Any) -> Any:
        stage = lowered(function, *arguments)
        plan = scheduled(stage.plan, chosen)
        leaves = tree.leaves(arguments)
        orders = [None, Random(0)][:runs]
        results = [HostExecutable(plan, poison=True, order=order)(leaves) for order in orders]
        for other in results[1:]:
            assert [x.tobytes() for x in other] == [x.tobytes() for x in results[0]]
        return tree.unflatten(stage.traced.out_structure, results[0])

    return run
