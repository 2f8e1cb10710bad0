"""Writes at fixed indices, one after the other, are those of the eager run, however they fuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph
from lowering.plan.nodes import walk
from lowering.plan.target.overrides import Choices
from tests.helpers.forced import on_host
from tests.helpers.running import jitted

STEP = st.tuples(*[st.integers(0, n) for n in (10, 1, 1, 5, 5, 3)])
"""A rule, the array that it changes, the one that it reads, two rows and a column."""

ARRAYS = tuple(
    np.random.default_rng(seed).integers(-9, 9, (6, 4)).astype(float) for seed in range(2)
)


def writes(steps: list[tuple[int, ...]]) -> Any:
    """A program that changes two arrays of 6 rows and 4 columns."""

    def run(*given: Any) -> Any:
        arrays = [x.copy() for x in given]
        kept = []
        for rule, a, b, i, j, k in steps:
            x, y = arrays[a], arrays[b]
            match rule:
                case 0:
                    x[i, k] = y[j, k] + 1
                case 1:
                    x[i] = y[j] % 7
                case 2:
                    x[i] += y[j, ::-1]
                case 3:
                    x[:, k] = y[::-1, (k + 1) % 4]
                case 4:
                    x[i, k] += x[j, k] % 5
                case 5:
                    x[i % 2 :: 2, k] = y[j % 2 :: 2, k] - 1
                case 6:
                    x[i:, 1:] = y[: 6 - i, :-1] + j
                case 7:
                    kept.append(x[i] + y[j])
                case 8:
                    x[i, k] = y[j].sum() % 11
                case 9:
                    x[i] = x[i] * 2 - x[j]
                case 10:
                    arrays[a] = x % 13
        return (*arrays, *kept)

    return run


def assert_same(found: Any, expected: Any) -> None:
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@settings(max_examples=30)
@given(steps=st.lists(STEP, min_size=2, max_size=14))
def test_writes_are_those_of_the_eager_run(steps: list[tuple[int, ...]]) -> None:
    program = writes(steps)
    expected = program(*ARRAYS)
    assert_same(jitted(program, *ARRAYS), expected)
    assert_same(on_host(Choices())(program, *ARRAYS), expected)


@settings(max_examples=20)
@given(steps=st.lists(STEP, min_size=1, max_size=5), n=st.integers(0, 5))
def test_writes_in_loops_are_those_of_the_eager_run(steps: list[tuple[int, ...]], n: int) -> None:
    body = writes([step for step in steps if step[0] != 7])

    def program(n: Any, *given: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda _, arrays: body(*arrays), given)

    expected = program(n, *ARRAYS)
    assert_same(jitted(program, n, *ARRAYS), expected)
    assert_same(on_host(Choices())(program, n, *ARRAYS), expected)


def nodes(function: Any, *given: Any) -> int:
    return len(list(walk(tracegraph.jit(function, device="cuda").lower(*given).plan.graph)))


def rewritten(count: int, rule: Any) -> Any:
    def run(x: Any) -> Any:
        y = x.copy()
        for i in range(1, count):
            rule(x, y, i)
        return y

    return run


def _set(y: Any, i: Any, value: Any) -> None:
    y[i] = value


RULES = {
    "independent": lambda x, y, i: _set(y, i, x[i] * 2),
    "recurrence": lambda x, y, i: _set(y, i, y[i - 1] * 0.5 + y[i]),
    "accumulated": lambda x, y, i: _set(y, 0, y[0] + x[i]),
    "backwards": lambda x, y, i: _set(y, -i, y[-i] + y[i]),
    "every other": lambda x, y, i: _set(y, i, y[i - 1] if i % 2 else x[i]),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", [(), (5,)])
def test_many_writes_take_few_kernels(name: str, shape: tuple[int, ...]) -> None:
    """As many as their expressions need, not one for each."""
    x = np.random.default_rng(0).integers(-9, 9, (200, *shape)) / 2.0
    function = rewritten(200, RULES[name])
    assert nodes(rewritten(64, RULES[name]), x[:64]) <= 4
    assert nodes(function, x) <= 6
    expected = function(x)
    np.testing.assert_array_equal(jitted(function, x), expected)
    np.testing.assert_array_equal(on_host(Choices())(function, x), expected)


def test_what_points_exchange_is_apart() -> None:
    """A row that is read in another order was written by other threads."""

    def turned(x: Any) -> Any:
        y = x.copy()
        for i in range(1, 9):
            y[i] = y[i - 1, ::-1] + 1
        return y

    x = np.arange(36.0).reshape(9, 4)
    assert nodes(turned, x) >= 9
    np.testing.assert_array_equal(on_host(Choices())(turned, x), turned(x))


UPDATES = {
    "added": lambda y, i: y.at[i].add(y[i + 1] * 2),
    "multiplied": lambda y, i: y.at[i].multiply(i + 1.0),
    "least": lambda y, i: y.at[i].min(y[i + 1] - 1),
    "greatest": lambda y, i: y.at[i + 1].max(y[i] + 1),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates_at_fixed_places_are_writes(name: str) -> None:
    def many(y: Any) -> Any:
        for i in range(60):
            y = UPDATES[name](y, i)
        return y

    x = np.random.default_rng(0).integers(-9, 9, 64) / 2.0
    assert nodes(many, x) <= 4
    expected = many(tracegraph.asarray(x, device="host"))
    np.testing.assert_array_equal(jitted(many, x), expected)
    np.testing.assert_array_equal(on_host(Choices())(many, x), expected)


def test_folds_and_writes_in_turn() -> None:
    """A row that is folded, the sum written to another row: the folds are one nest."""

    def summed(x: Any) -> Any:
        y = x.copy()
        for i in range(40):
            y[i, 2] = y[i + 1].sum()
        return y

    def carried(x: Any) -> Any:
        y = x.copy()
        for i in range(9):
            y[i + 1, 2] = y[i].sum()
        return y

    x = np.random.default_rng(0).integers(-9, 9, (41, 8)) / 2.0
    assert nodes(summed, x) <= 8
    for function in (summed, carried):
        expected = function(x)
        np.testing.assert_array_equal(jitted(function, x), expected)
        np.testing.assert_array_equal(on_host(Choices())(function, x), expected)
