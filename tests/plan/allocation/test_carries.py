"""Carries that are updated in part are updated in place: no step copies a whole array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.overrides import Choices
from tests.helpers.forced import on_host, unscheduled
from tracegraph import fori_loop, scan

A = np.arange(64.0) % 7
ROWS = np.arange(160.0).reshape(16, 10) % 11


def leapfrog(a: Any, n: Any) -> Any:
    """Each of two arrays is read before it is updated, and after the other one is."""

    def body(i: Any, c: Any) -> Any:
        e, h = c
        h = h.at[1:-1].set(e[2:] - e[:-2]) if hasattr(h, "at") else _with(h, e[2:] - e[:-2])
        e = e.at[1:-1].set(h[2:] + h[:-2]) if hasattr(e, "at") else _with(e, h[2:] + h[:-2])
        return e % 5, h

    return fori_loop(0, n, body, (a, a * 2))


def _with(x: Any, inner: Any) -> Any:
    x = x.copy()
    x[1:-1] = inner
    return x


def moved_row(rows: Any, n: Any) -> Any:
    """A row is read, cleared, and added elsewhere."""

    def body(i: Any, c: Any) -> Any:
        c = c.copy()
        row = c[i].copy()
        c[i] = np.zeros(10)
        c[15 - i] = c[15 - i] + row
        return c

    def traced(i: Any, c: Any) -> Any:
        row = c[i]
        return c.at[i].set(0.0).at[15 - i].add(row)

    return fori_loop(0, n, traced if hasattr(rows, "at") else body, rows)


def read_twice(rows: Any, n: Any) -> Any:
    """What is read of the old array is used in two later updates, and returned."""

    def body(c: Any, i: Any) -> Any:
        if not hasattr(c, "at"):
            old, c = c[i].copy(), c.copy()
            c[i] = old[::-1]
            c[0] = c[0] + old
            return c, old
        old = c[i]
        return c.at[i].set(old[::-1]).at[0].add(old), old

    return scan(body, rows, np.arange(1, 1 + n))


def whole_array_copies(plan: Any) -> int:
    """How many nests of the loop's body write all elements of an array."""
    (loop,) = [node for node in plan.graph.nodes if node.kind == "while"]
    nests = [nest for node in loop.body.nodes for nest in node.kernel.nests]
    maps = [nest for nest in nests if type(nest).__name__ == "MapNest"]
    large = [nest for nest in maps if nest.space in (A.shape, ROWS.shape)]
    return sum(any(store.guard is None for store in nest.stores) for nest in large)


@pytest.mark.parametrize("function", [moved_row, read_twice])
def test_no_step_copies_an_array_of_which_it_updates_a_row(function: Any) -> None:
    stage = tracegraph.jit(lambda x: function(x, 12), device="host").lower(ROWS)
    assert whole_array_copies(unscheduled(stage)) == 0


def test_arrays_that_are_updated_in_turn_are_not_copied() -> None:
    stage = tracegraph.jit(lambda x: leapfrog(x, 12), device="host").lower(A)
    assert whole_array_copies(unscheduled(stage)) <= 1  # the remainder, by itself


@pytest.mark.parametrize(("function", "x"), [(leapfrog, A), (moved_row, ROWS), (read_twice, ROWS)])
@pytest.mark.parametrize("chosen", [Choices("conditional", "conditional"), Choices()])
def test_results_are_those_of_the_eager_run(function: Any, x: Any, chosen: Choices) -> None:
    for n in (1, 2, 12):
        wanted = function(x, n)
        found = on_host(chosen)(lambda x: function(x, n), x)  # noqa: B023
        for new, old in zip(*map(tracegraph.tree.leaves, (found, wanted)), strict=True):
            np.testing.assert_array_equal(new, old)


def test_an_update_whose_result_is_changed_again_stores_it_once() -> None:
    """The stores to the carry are dead: what follows in the same nest replaces it."""

    def changed(x: Any) -> Any:
        return fori_loop(0, 12, lambda i, c: c.at[1:-1].add(1.0) % 5, x)

    stage = tracegraph.jit(changed, device="host").lower(A)
    (loop,) = [node for node in unscheduled(stage).graph.nodes if node.kind == "while"]
    nests = [nest for node in loop.body.nodes for nest in node.kernel.nests]
    (update,) = [nest for nest in nests if nest.space == A.shape]
    assert len(update.stores) == 1
