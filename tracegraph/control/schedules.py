"""Schedules: the ways in which a graph can carry out a loop or a branch, where the user pins one.

conditional  a node of the graph decides: IF, SWITCH or WHILE
predicated   the kernels of all branches are launched; those of the branches not taken return
unrolled     one iteration makes several steps; those past the end return
"""

from __future__ import annotations

import operator
from typing import Any, Literal, get_args

from tracegraph import errors

BranchSchedule = Literal["conditional", "predicated"]
LoopSchedule = Literal["conditional", "unrolled"]


def branch_schedule(construct: str, schedule: str | None) -> dict[str, Any]:
    """The attributes of a branch's equation that say how it is to be carried out.

    Raises:
        ScheduleError: there is no such schedule.

    >>> branch_schedule("cond", "predicated"), branch_schedule("cond", None)
    ({'schedule': 'predicated'}, {})
    """
    return _named(construct, schedule, get_args(BranchSchedule))


def loop_schedule(construct: str, schedule: str | None, unroll: Any = None) -> dict[str, Any]:
    """The attributes of a loop's equation; `unroll` is the number of steps in one iteration.

    Raises:
        ScheduleError: there is no such schedule, or it makes no such number of steps.

    >>> loop_schedule("while_loop", None, 4)
    {'schedule': 'unrolled', 'unroll': 4}
    >>> loop_schedule("while_loop", None, 1)
    {'schedule': 'conditional'}
    """
    attrs = _named(construct, schedule, get_args(LoopSchedule))
    if unroll is None:
        return attrs
    try:
        factor = operator.index(unroll)
    except TypeError:
        factor = 0
    if isinstance(unroll, bool) or factor < 1:
        raise errors.ScheduleError(construct, "unroll", "None or an int of at least 1", unroll)
    if schedule == "conditional" and factor > 1:
        raise errors.ScheduleError(construct, "unroll", "1 where schedule='conditional'", unroll)
    return (
        {"schedule": "conditional"} if factor == 1 else {"schedule": "unrolled", "unroll": factor}
    )


def _named(construct: str, schedule: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if schedule is None:
        return {}
    if not isinstance(schedule, str) or schedule not in known:
        needed = f"None, {', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise errors.ScheduleError(construct, "schedule", needed, schedule)
    return {"schedule": schedule}
