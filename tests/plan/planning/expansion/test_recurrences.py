"""Scans that are linear recurrences: which ones run in chunks, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from tests.programs.recurrences import LINEAR, LONG, RNG, UNIT, ZERO, X, average, running
from tracegraph import scan, tree
from tracegraph.ir.program import Program, walk


def growing(h: Any, x: Any) -> Any:
    return 1.01 * h + x


Function = Callable[..., Any]

OTHERS: dict[str, tuple[Function, tuple[Any, ...]]] = {
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
    "few steps": (lambda x: running(average, ZERO, x), (X[:120],)),
    "many elements": (lambda x: running(average, np.zeros(40_000), x), (np.ones((150, 40_000)),)),
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
            unit = 300 * np.finfo(wanted.dtype).eps * np.abs(wanted).max()
            np.testing.assert_allclose(got, wanted, rtol=0, atol=unit)


@pytest.mark.parametrize("name", OTHERS)
def test_other_scans_stay_as_they_are(name: str) -> None:
    program = program_of(*OTHERS[name])
    assert expand_recurrences(program, TARGET) is program


def weighted(x: Any, a: Any, **options: Any) -> Any:
    return running(lambda h, x, a: a * h + x, ZERO, x, a, **options)[1]


def on_cuda_plan(function: Function, *arguments: Any) -> Any:
    """The result of the plan for a GPU, run on the host."""
    (found,) = HostExecutable(lower(program_of(function, arguments), "cuda"))(list(arguments))
    return found


def test_factors_that_are_arguments_decide_when_it_runs() -> None:
    """With one above 1, or NaN, the steps are made in order, and so have the same bits."""
    assert min(lengths(expand_recurrences(program_of(weighted, (X, UNIT)), TARGET))) < 100
    in_order = partial(weighted, schedule="one_kernel")
    found, expected = on_cuda_plan(weighted, X, UNIT), on_cuda_plan(in_order, X, UNIT)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    assert (found != expected).any()
    for place, factor in ((0, 1.5), (500, -1.1), (900, np.nan)):
        factors = UNIT.copy()
        factors[place, 1] = factor
        expected = on_cuda_plan(in_order, X, factors)
        np.testing.assert_array_equal(on_cuda_plan(weighted, X, factors), expected)


def test_products_that_would_overflow_are_not_formed() -> None:
    """Large factors while the carry is 0: their product is infinite, the carry is not."""
    x, a = np.zeros((LONG, 3)), np.full((LONG, 3), 0.5)
    a[:400], x[400:] = 1e200, 1
    found = on_cuda_plan(weighted, x, a)
    np.testing.assert_array_equal(found, weighted(x, a))
    assert np.isfinite(found).all()


def test_what_a_choice_drops_may_be_nan() -> None:
    x, new = X.copy(), np.zeros((LONG, 3), bool)
    x[100], new[300] = np.nan, True
    x[700], new[701] = np.inf, True
    function, _ = LINEAR["restarts"]
    found = HostExecutable(lower(program_of(function, (x, new)), "cuda"))([x, new])
    for got, wanted in zip(found, tree.leaves(function(x, new)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)
        assert np.isnan(wanted).any() == (wanted.ndim > 1)


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


def test_planning_time_does_not_grow_with_the_steps() -> None:
    """A million steps have as many levels of chunks as make them few, and no more equations."""
    long = tracegraph.ArrayType("float64", (10_000_000, 3))
    program = tracegraph.jit(lambda x: running(average, ZERO, x), device="cuda").trace(long)
    found = expand_recurrences(program.optimized, TARGET)
    assert sum(1 for _ in walk(found.body)) < 200
