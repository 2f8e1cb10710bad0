"""Scans that are linear recurrences: which ones run in chunks, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda import TARGET
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.target.overrides import override
from lowering.planning.expansion.recurrences.chunked_scans import expand_recurrences
from lowering.planning.expansion.recurrences.intervals import ANY, interval_of
from tracegraph import scan, tree
from tracegraph.ir.program import Program, walk

LONG = 1003
RNG = np.random.default_rng(8)
X, Y = RNG.standard_normal((LONG, 3)), RNG.standard_normal((LONG, 3))
SINGLE = X.astype("float32")
FLAGS = RNG.random((LONG, 3)) < 0.1
UNIT = RNG.uniform(0, 1, (LONG, 3))

Function = Callable[..., Any]


def running(step: Function, first: Any, *xs: Any, **options: Any) -> Any:
    """A scan that stacks what each step carries."""

    def both(h: Any, x: Any) -> Any:
        after = step(h, *x)
        return after, after

    return scan(both, first, xs, **options)


def average(h: Any, x: Any) -> Any:
    return h + 0.1 * (x - h)


def several(state: Any, x: Any) -> Any:
    mean, square, count = state
    return average(mean, x), 0.99 * square + 0.01 * x * x, count + 2


def derived(x: Any) -> Any:
    return tracegraph.grad(lambda x: (running(average, np.zeros(3), x)[1] ** 2).sum())(x)


ZERO = np.zeros(3)

LINEAR: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "an average": (lambda x: running(average, ZERO, x), (X,)),
    "float32": (
        lambda x: running(lambda h, x: h * np.float32(0.5) - x, ZERO.astype("f4"), x),
        (SINGLE,),
    ),
    "sums, from the end": (lambda x: running(lambda h, x: x + h, ZERO, x, reverse=True), (X,)),
    "restarts": (
        lambda x, new: running(lambda h, x, new: np.where(new, x, 0.9 * h + x), ZERO, x, new),
        (X, FLAGS),
    ),
    "flags as factors": (
        lambda x, end: running(
            lambda h, x, end: x + 0.95 * (1 - end) * h, ZERO, x, end, reverse=True
        ),
        (X, FLAGS),
    ),
    "factors between 0 and 1": (
        lambda x, a: running(lambda h, x, a: a * h - (1 - a) * x, ZERO, x, 1 / (1 + np.exp(-a))),
        (X, Y),
    ),
    "decays": (
        lambda x, a: running(
            lambda h, x, a: np.exp(-np.abs(a)) * h / 2 + np.tanh(a) * -h / 4, ZERO, x, a
        ),
        (X, Y),
    ),
    "several arrays": (lambda x: running(several, (ZERO, ZERO, np.int32(7)), x), (X,)),
    "complex": (lambda x: running(lambda h, x: (0.6 + 0.8j) * h + x, ZERO + 0j, x), (X,)),
    "integers": (
        lambda x: running(lambda h, x: 3 * h - x, np.int64(1), x),
        ((X[:, 0] * 9).astype(int),),
    ),
    "products with a matrix": (
        lambda x, w: running(lambda h, x: 0.9 * h + w @ x, ZERO, x),
        (X, RNG.standard_normal((3, 3))),
    ),
    "only the last": (lambda x: scan(lambda h, x: (0.99 * h + x, None), ZERO, x)[0], (X,)),
    "no slices": (lambda x: scan(lambda h, _: (0.9 * h + x, h), ZERO, length=LONG), (X[0],)),
    "what is stacked is not linear": (
        lambda x: scan(lambda h, x: (0.9 * h + x, np.sin(h) * x), ZERO, x),
        (X,),
    ),
    "a factor that is an argument of a constant": (
        lambda x: running(lambda h, x, a: a * h + x, ZERO, x, UNIT),
        (X,),
    ),
    "a derivative": (derived, (X,)),
}
"""Functions of scans that run in chunks."""


def growing(h: Any, x: Any) -> Any:
    return 1.01 * h + x


OTHERS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "any factors": (lambda x, a: running(lambda h, x, a: a * h + x, ZERO, x, a), (X, UNIT)),
    "growing": (lambda x: running(growing, ZERO, x), (X,)),
    "not linear": (lambda x: running(lambda h, x: np.tanh(h + x), ZERO, x), (X,)),
    "a square": (lambda x: running(lambda h, x: h * h / 9 + x, ZERO, x), (X,)),
    "arrays that depend on one another": (
        lambda x: running(lambda s, x: (s[1], -s[0] + x), (ZERO, ZERO), x),
        (X,),
    ),
    "a choice by the carry": (
        lambda x: running(lambda h, x: np.where(h > 1, 0, h + x), ZERO, x),
        (X,),
    ),
    "few steps": (lambda x: running(average, ZERO, x), (X[:200],)),
    "many elements": (lambda x: running(average, np.zeros(10_000), x), (np.ones((300, 10_000)),)),
    "float16": (lambda x: running(average, ZERO.astype("f2"), x), (X.astype("f2"),)),
    "a pinned schedule": (lambda x: running(average, ZERO, x, schedule="one_kernel"), (X,)),
    "an effect": (
        lambda x: running(
            lambda h, x: (tracegraph.debug.print("{}", x), average(h, x))[1], ZERO, x
        ),
        (X,),
    ),
}


def program_of(function: Function, arguments: tuple[Any, ...]) -> Program:
    program: Program = tracegraph.jit(function, device="cuda").trace(*arguments).optimized
    return program


def lengths(program: Program) -> list[int]:
    return [eqn.attrs["length"] for eqn in walk(program.body) if eqn.op.name == "scan"]


@pytest.mark.parametrize("name", LINEAR)
def test_recurrences_run_in_chunks(name: str) -> None:
    function, arguments = LINEAR[name]
    found = expand_recurrences(program_of(function, arguments), TARGET)
    assert max(lengths(found)) < 100
    with np.errstate(all="ignore"):
        expected = tree.leaves(function(*arguments))
    plan = lower(program_of(function, arguments), "cuda")
    results = HostExecutable(plan, poison=True)(list(arguments))
    for got, wanted in zip(results, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind == "i":
            np.testing.assert_array_equal(got, wanted)
        else:
            unit = 50 * np.finfo(wanted.dtype).eps * np.abs(wanted).max()
            np.testing.assert_allclose(got, wanted, rtol=0, atol=unit)


@pytest.mark.parametrize("name", OTHERS)
def test_other_scans_stay_as_they_are(name: str) -> None:
    program = program_of(*OTHERS[name])
    assert expand_recurrences(program, TARGET) is program


def test_a_schedule_for_all_loops_keeps_their_steps_in_order() -> None:
    function, arguments = LINEAR["an average"]

    def explained(device: str) -> str:
        return tracegraph.jit(function, device=device).lower(*arguments).explain()

    assert f" {LONG} " not in explained("cuda")
    assert f" {LONG} " in explained("host")
    with override(loops="one_kernel"):
        assert f" {LONG} " in explained("cuda")


def test_chunks_of_chunks() -> None:
    """A million steps: hundreds of them wait for one another."""
    x = RNG.standard_normal(1_000_000)

    def last(x: Any) -> Any:
        return scan(lambda h, x: (0.9999 * h + x, None), 0.0, x)[0]

    program = program_of(last, (x,))
    assert sum(lengths(expand_recurrences(program, TARGET))) < 2000
    (found,) = HostExecutable(lower(program, "cuda"))([x])
    weights = 0.9999 ** np.arange(1_000_000)[::-1]
    np.testing.assert_allclose(found, (weights * x).sum(), rtol=1e-9)


def test_a_recurrence_in_a_loop() -> None:
    def smoothed(x: Any, times: Any) -> Any:
        def once(_: Any, x: Any) -> Any:
            return running(average, ZERO, x)[1]

        return tracegraph.fori_loop(0, times, once, x)

    program = program_of(smoothed, (X, 3))
    assert max(lengths(expand_recurrences(program, TARGET))) < 100
    (found,) = HostExecutable(lower(program, "cuda"))([X, np.int64(3)])
    np.testing.assert_allclose(found, smoothed(X, 3), rtol=1e-12, atol=1e-14)


def test_intervals_hold() -> None:
    """Each op's rule, on values at and between the bounds of its operands."""

    def values(x: Any, y: Any) -> Any:
        x, y = np.sin(x), np.tanh(y)  # both between -1 and 1
        z = 2 + x / 2
        return (
            *(x + y, x - y, x * y, -z, np.abs(x), np.square(z), np.maximum(z, 2), np.minimum(x, y)),
            *(np.where(x > y, z, y), np.exp(z), x / z, 1 / (0 - z), np.cos(x) * z, x[::2]),
            *((x > 0) * z, 3.0 - (x > 0), np.float32(7) * x.astype("float32")),
        )

    grid = np.linspace(-9, 9, 101)
    x, y = (each.ravel() for each in np.meshgrid(grid, grid))
    program = program_of(values, (x, y))
    defs = {value: eqn for eqn in program.body.eqns for value in eqn.outputs}
    for atom, value in zip(program.body.results, values(x, y), strict=True):
        low, high = interval_of(atom, defs, lambda _: None)
        assert (low, high) != ANY
        assert -np.inf < low < high < np.inf
        slack = 1e-6 * (high - low)
        assert low - slack <= value.min()
        assert value.max() <= high + slack
        assert value.max() - value.min() > 0.2 * (high - low)  # they say something
