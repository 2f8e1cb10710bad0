"""One assertion: what a planned function runs side by side shares no memory that is written."""

from __future__ import annotations

from typing import Any

from lowering.plan.plan import Plan
from lowering.plan.reports.races import races
from tracegraph.errors import value_text

_SHOWN = 8
"""Races that a message lists."""


def assert_no_races(planned: Any) -> None:
    """Assert that the edges of a Plan order all nodes that must not run at the same time.

    Two nodes of a graph that no path of edges orders may run in either order, or side by side. So
    neither may write memory that the other accesses: a buffer, or bytes of the arena that both of
    their buffers are in. The same holds for conditions, for what the host sees in order, such as
    prints, and for what a barrier separates. Bodies of loops and branches count as their node, and
    are checked themselves. Nothing is run.

    `assert_traced_equals_eager` and the tests of tracegraph check each Plan that they make.

    Args:
        planned: what `jit(f).lower(*args)` or its `compile()` returns, or a Plan.

    Raises:
        AssertionError: some nodes race. The message names them, and what they share.
        TypeError: `planned` is something else.

    >>> import numpy as np
    >>> import tracegraph
    >>> running = tracegraph.jit(lambda x: np.cumsum(np.sort(x)), device="host")
    >>> assert_no_races(running.lower(np.ones(8)))
    """
    plan = getattr(planned, "plan", planned)
    if not isinstance(plan, Plan):
        raise TypeError(
            "assert_no_races takes what jit(f).lower(*args) returns, or a Plan, not "
            f"{value_text(planned)}"
        )
    found = races(plan)
    if found:
        lines = [f"  {race}" for race in found[:_SHOWN]]
        more = len(found) - len(lines)
        lines += [f"  and {more} more"] if more else []
        raise AssertionError("\n".join([f"nodes of the plan of {plan.name} race:", *lines]))
