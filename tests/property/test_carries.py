"""Carries that are read and written in part, in any order, are those of the eager run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from tests.helpers.forced import FORCED, on_host
from tracegraph import cond, fori_loop

STEP = st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 2), st.integers(0, 4))
"""A rule, the carry that it changes, the one that it reads, and a number."""

ORDERS = st.one_of(st.just((0, 1, 2)), st.tuples(*[st.integers(0, 2)] * 3))
"""Which of the carries become the next ones."""


def updated(x: Any, index: Any, value: Any, add: bool = False) -> Any:
    if hasattr(x, "at"):
        return x.at[index].add(value) if add else x.at[index].set(value)
    x = x.copy()
    x[index] = x[index] + value if add else value
    return x


def loop(steps: list[tuple[int, int, int, int]], order: tuple[int, ...], n: Any) -> Any:
    """A loop over three arrays of 8 rows."""

    def body(i: Any, carries: Any) -> Any:
        c = list(carries)
        row = c[0][i % 8] + 0
        for rule, a, b, k in steps:
            match rule:
                case 0:
                    c[a] = updated(c[a], i % 8, c[b][(i + k) % 8] + 1)
                case 1:
                    c[a] = updated(c[a], (i + k) % 8, row, add=True)
                case 2:
                    row = c[b][(i * k) % 8] % 13
                case 3:
                    c[a] = updated(c[a], slice(1, 5), c[b][2:6] % 17)
                case 4:
                    c[a] = (c[a] + c[b][::-1]) % 19
                case 5:
                    c[a] = updated(c[a], k, c[a][7 - k] - c[b][k])
                case 6:
                    row = row + np.sum(c[b], axis=0) % 5
                case 7:
                    write = lambda x, row=row: updated(x, i % 8, row)  # noqa: E731
                    c[a] = cond(np.sum(row) > k * 10, write, lambda x: x + 0, c[a])
                case 8:
                    c[a] = updated(c[b], (k, 1), c[a][k, 0])
        return tuple(c[place] for place in order)

    return lambda *xs: fori_loop(0, n, body, xs)


ARRAYS = tuple(
    np.random.default_rng(seed).integers(0, 9, (8, 3)).astype(float) for seed in range(3)
)


@pytest.mark.parametrize("way", FORCED)
@settings(max_examples=25)
@given(steps=st.lists(STEP, min_size=2, max_size=5), order=ORDERS, n=st.integers(0, 11))
def test_in_every_schedule(way: str, steps: Any, order: Any, n: int) -> None:
    wanted = loop(steps, order, n)(*ARRAYS)
    for new, old in zip(on_host(FORCED[way])(loop(steps, order, n), *ARRAYS), wanted, strict=True):
        np.testing.assert_array_equal(new, old)


@settings(max_examples=25)
@given(steps=st.lists(STEP, min_size=2, max_size=5), order=ORDERS, n=st.integers(0, 11))
def test_in_donated_arguments(steps: Any, order: Any, n: int) -> None:
    def run(n: Any, *xs: Any) -> Any:
        return loop(steps, order, n)(*xs)

    given_away = [tracegraph.asarray(x, device="host") for x in ARRAYS]
    found = tracegraph.jit(run, device="host", donate_argnums=(1, 2, 3))(n, *given_away)
    for new, old in zip(found, loop(steps, order, n)(*ARRAYS), strict=True):
        np.testing.assert_array_equal(np.asarray(new), old)
