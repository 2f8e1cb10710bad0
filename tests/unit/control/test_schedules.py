"""The arguments `schedule` and `unroll` of loops and branches: what they take, where they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracegraph import cond, errors, fori_loop, jit, map, scan, switch, while_loop

X = np.arange(3.0)

USES: dict[str, Callable[..., Any]] = {
    "cond": lambda x, **given: cond(x[0] > 0, np.sin, np.cos, x, **given),
    "switch": lambda x, **given: switch(1, [np.sin, np.cos], x, **given),
    "while_loop": lambda x, **given: while_loop(lambda x: x[0] < 5, lambda x: x + 1, x, **given),
    "fori_loop": lambda x, **given: fori_loop(0, 5, lambda i, x: x + i, x, **given),
    "scan": lambda x, **given: scan(lambda c, y: (c + y, c), 0.0, x, **given)[0],
    "map": lambda x, **given: map(lambda y: y + 1, x, **given),
}
BRANCHES = ("cond", "switch")
KNOWN = {name: ("predicated",) if name in BRANCHES else ("unrolled", "one_kernel") for name in USES}
LANES = ("fori_loop",)
"""What can have a thread for each lane: the others decide by one element, or have one."""


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", USES)
def test_a_schedule_changes_no_result(name: str, traced: bool) -> None:
    for schedule in ("conditional", *KNOWN[name], *(["per_lane"] if name in LANES else [])):

        def run(x: Any, schedule: str = schedule) -> Any:
            return USES[name](x, schedule=schedule)

        result = jit(run, device="host")(X) if traced else run(X)
        np.testing.assert_allclose(np.asarray(result), np.asarray(USES[name](X)))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", USES)
def test_another_name_is_an_error(name: str, traced: bool) -> None:
    for wrong in ("unrolled" if name in BRANCHES else "predicated", "", 3):

        def run(x: Any, wrong: Any = wrong) -> Any:
            return USES[name](x, schedule=wrong)

        known = "'predicated'" if name in BRANCHES else "'unrolled', 'one_kernel' or 'per_lane'"
        joint = " or" if name in BRANCHES else ","
        needed = rf"{name}: schedule must be None, 'conditional'{joint} {known}, not"
        with pytest.raises(errors.ScheduleError, match=needed):
            jit(run, device="host")(X) if traced else run(X)


@pytest.mark.parametrize("name", ["while_loop", "fori_loop"])
def test_the_steps_of_an_iteration(name: str) -> None:
    for unroll, attrs in (
        (1, "schedule=conditional"),
        (4, "schedule=unrolled, unroll=4"),
        (np.int64(2), "schedule=unrolled, unroll=2"),
    ):
        program = jit(lambda x, u=unroll: USES[name](x, unroll=u), device="host").trace(X).program
        assert attrs in str(program)
    for wrong in (0, -1, True, 2.0, "2"):
        with pytest.raises(errors.ScheduleError, match="unroll must be None or an int of at least"):
            USES[name](X, unroll=wrong)
    with pytest.raises(errors.ScheduleError, match="unroll must be 1 where schedule='conditional'"):
        USES[name](X, unroll=2, schedule="conditional")


@pytest.mark.parametrize("name", USES)
def test_the_program_says_what_is_pinned(name: str) -> None:
    pinned = jit(lambda x: USES[name](x, schedule=KNOWN[name][0]), device="host").trace(X).program
    assert f"schedule={KNOWN[name][0]}" in str(pinned)
    assert "schedule=" not in str(jit(USES[name], device="host").trace(X).program)
