"""What a user may pin for a loop or a branch, as hints of its equation: schedules, checkpoints.

conditional  a node of the graph decides: IF, SWITCH or WHILE
predicated   the kernels of all branches are launched; those of branches not taken return
unrolled     one iteration of the node makes several steps; those past the end return
one_kernel   one kernel makes all steps, with barriers where steps of its threads meet
per_lane     one kernel makes all steps; each thread makes those of one element, without barriers
"""

from __future__ import annotations

import operator
from typing import Any, Literal, get_args

from tracegraph import errors
from tracegraph.ir.program import Hints
from tracegraph.ir.record import replace
from tracegraph.tracing.tracer import Tracer

BranchSchedule = Literal["conditional", "predicated"]
LoopSchedule = Literal["conditional", "unrolled", "one_kernel", "per_lane"]

_RECORDED_OTHERWISE = ("fori_loop", "map")
"""Loops that are recorded as an op of another name."""


def branch_schedule(construct: str, schedule: str | None) -> Hints:
    """The hints of a branch's equation.

    Raises:
        ScheduleError: there is no such schedule.

    >>> branch_schedule("cond", "predicated").given()
    {'schedule': 'predicated'}
    """
    return Hints(_checked(construct, schedule, get_args(BranchSchedule)))


def loop_hints(
    construct: str, schedule: str | None, unroll: Any = None, checkpoints: Any = None
) -> Hints:
    """The hints of a loop's equation; `unroll` is the number of steps in one iteration.

    Raises:
        ScheduleError: there is no such schedule, or `unroll` does not fit it.
        StaticLengthError: `checkpoints` is a traced value.
        CheckpointsError: `checkpoints` is not an int of at least 1.

    >>> loop_hints("while_loop", None, 4).given()
    {'schedule': 'unrolled', 'unroll': 4}
    >>> loop_hints("fori_loop", None, 1).given()
    {'schedule': 'conditional', 'construct': 'fori_loop'}
    """
    hints = _loop_schedule(construct, schedule, unroll)
    if checkpoints is None:
        return hints
    return replace(hints, checkpoints=_checkpoints(construct, checkpoints))


def _checkpoints(construct: str, value: Any) -> int:
    if isinstance(value, Tracer):
        raise errors.StaticLengthError(construct, "checkpoints", value)
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if isinstance(value, bool) or count < 1:
        raise errors.CheckpointsError(construct, value)
    return count


def _loop_schedule(construct: str, schedule: str | None, unroll: Any) -> Hints:
    named = construct if construct in _RECORDED_OTHERWISE else None
    schedule = _checked(construct, schedule, get_args(LoopSchedule))
    if unroll is None:
        return Hints(schedule, None, named)
    try:
        factor = operator.index(unroll)
    except TypeError:
        factor = 0
    if isinstance(unroll, bool) or factor < 1:
        raise errors.ScheduleError(construct, "unroll", "None or an int of at least 1", unroll)
    if schedule in ("conditional", "one_kernel", "per_lane") and factor > 1:
        raise errors.ScheduleError(construct, "unroll", f"1 where {schedule=}", unroll)
    if factor == 1:
        return Hints(schedule or "conditional", None, named)
    return Hints("unrolled", factor, named)


def _checked(construct: str, schedule: Any, known: tuple[str, ...]) -> str | None:
    if schedule is None:
        return None
    if not isinstance(schedule, str) or schedule not in known:
        needed = f"None, {', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise errors.ScheduleError(construct, "schedule", needed, schedule)
    return schedule
