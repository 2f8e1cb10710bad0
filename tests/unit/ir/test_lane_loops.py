"""Loops of lanes are recognised by what they keep, and others are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.programs.lanes import PROGRAMS
from tracegraph import cond, debug, jvp, vmap, while_loop
from tracegraph.ir.lane_loops import mask_of_branch, mask_of_lanes
from tracegraph.ir.program import Eqn, walk


def loops_of(function: Callable[..., Any], *arguments: Any) -> list[Eqn]:
    program = tracegraph.jit(function, device="host").trace(*arguments).optimized
    return [eqn for eqn in walk(program.body) if eqn.op.name == "while_loop"]


def lanes_of(function: Callable[..., Any], *arguments: Any) -> list[tuple[int, ...] | None]:
    """The lanes of each loop."""
    found: list[tuple[int, ...] | None] = []
    for eqn in loops_of(function, *arguments):
        mask = mask_of_lanes(eqn)
        found.append(None if mask is None else eqn.operands[mask].type.shape)
    return found


def halved(x: Any) -> Any:
    return while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + s[0]), (x, x))[1]


def halved_vector(v: Any) -> Any:
    return while_loop(lambda v: np.sum(v) > 1, lambda v: v / 2, v)


X = np.arange(12.0)


def test_vmap_makes_loops_of_lanes() -> None:
    assert lanes_of(vmap(halved), X) == [(12,)]
    assert lanes_of(vmap(halved_vector), X.reshape(3, 4)) == [(3,)]


def test_another_vmap_adds_an_axis_to_their_mask() -> None:
    assert lanes_of(vmap(vmap(halved)), X.reshape(3, 4)) == [(3, 4)]
    assert lanes_of(vmap(vmap(vmap(halved))), X.reshape(3, 2, 2)) == [(3, 2, 2)]
    (loop,) = loops_of(vmap(vmap(halved)), X.reshape(3, 4))
    assert [eqn.op.name for eqn in loop.regions[1].eqns].count("logical_and") == 1


def test_a_vmap_along_which_they_do_not_differ_adds_none() -> None:
    def run(x: Any, y: Any) -> Any:
        return vmap(lambda y: vmap(halved)(x) + y)(y)

    assert lanes_of(run, X, X) == [(12,)]


def test_tangents_end_with_their_lanes() -> None:
    assert lanes_of(lambda x: jvp(vmap(halved), (x,), (x,)), X) == [(12,)]


def of_all(x: Any) -> Any:
    return while_loop(lambda x: np.any(x > 1), lambda x: x / 2, x)


def by_a_mask_that_rises(x: Any) -> Any:
    def step(s: Any) -> Any:
        x, live = s
        return np.where(live, x / 2, x), x > 1

    return while_loop(lambda s: np.any(s[1]), step, (x, x > 1))[0]


def what_has_ended_changes(x: Any) -> Any:
    def step(s: Any) -> Any:
        x, live = s
        return x / 2, live & (x > 1)

    return while_loop(lambda s: np.any(s[1]), step, (x, x > 1))[0]


def by_the_mask_of_others(x: Any) -> Any:
    def step(s: Any) -> Any:
        x, live = s
        return np.where(live[::-1], x / 2, x), live & (x > 1)

    return while_loop(lambda s: np.any(s[1]), step, (x, x > 1))[0]


def along_other_axes(x: Any) -> Any:
    """The mask is that of columns: it stands at the last axis."""

    def step(s: Any) -> Any:
        x, live = s
        return np.where(live, x / 2, x), live & (x[0] > 1)

    return while_loop(lambda s: np.any(s[1]), step, (x, x[0] > 1))[0]


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (of_all, X),
        (by_a_mask_that_rises, X),
        (what_has_ended_changes, X),
        (by_the_mask_of_others, X),
        (along_other_axes, np.arange(9.0).reshape(3, 3)),
        (halved, X[3]),
    ],
)
def test_other_loops_are_none(function: Callable[..., Any], x: Any) -> None:
    assert lanes_of(function, x) == [None]


def test_lanes_that_write_to_arrays_of_their_own_are_lanes() -> None:
    function, arguments = PROGRAMS["kept_steps"]
    assert lanes_of(function, *arguments) == [(40,)]


def test_a_loop_that_prints_is_none() -> None:
    def printing(x: Any) -> Any:
        def step(x: Any) -> Any:
            debug.print("{}", x)
            return x / 2

        return while_loop(lambda x: x > 1, step, x)

    assert None in lanes_of(vmap(printing), X)


def branches_of(function: Callable[..., Any], *arguments: Any) -> list[tuple[int, ...] | None]:
    """The lanes of each cond."""
    program = tracegraph.jit(function, device="host").trace(*arguments).optimized
    regions = [program.body, *[region for eqn in walk(program.body) for region in eqn.regions]]
    found: list[tuple[int, ...] | None] = []
    for region in regions:
        made = {value: eqn for eqn in region.eqns for value in eqn.outputs}
        for eqn in [eqn for eqn in region.eqns if eqn.op.name == "cond"]:
            mask = mask_of_branch(eqn, made)
            found.append(None if mask is None else eqn.operands[1 + mask].type.shape)
    return found


def test_branches_that_lanes_take_apart() -> None:
    def long(x: Any) -> Any:
        return while_loop(lambda x: x > 3, lambda x: x / 2, x)

    def one(x: Any) -> Any:
        return cond(x > 5, long, lambda x: long(x + 1), x)

    assert branches_of(vmap(one), X) == [(12,), (12,)]
    assert branches_of(vmap(vmap(one)), X.reshape(3, 4)) == [(3, 4), (3, 4)]


@pytest.mark.parametrize(
    "skipped",
    [lambda x, live: x * 2, lambda x, live: x * 0 + 1, lambda x, live: x[::-1]],
)
def test_a_branch_that_changes_what_takes_it_not_is_none(skipped: Any) -> None:
    """One that all elements take together, even those that the mask leaves out."""

    def run(x: Any) -> Any:
        live = x > 3
        return cond(np.any(live), lambda x, m: np.where(m, x + 1, x), skipped, x, live)

    assert branches_of(run, X) == [None]


def test_a_branch_for_all_if_any_takes_it_is_none() -> None:
    def run(x: Any) -> Any:
        return cond(np.any(x > 3), lambda x, m: x + 1, lambda x, m: x, x, x > 3)

    assert branches_of(run, X) == [None]


def test_a_loop_that_is_written_as_vmap_would_is_one() -> None:
    def run(x: Any) -> Any:
        def step(s: Any) -> Any:
            x, live = s
            x = np.where(live, x / 2, x)
            return x, live & (x > 1)

        return while_loop(lambda s: np.any(s[1]), step, (x, x > 1))[0]

    assert lanes_of(run, X) == [(12,)]
