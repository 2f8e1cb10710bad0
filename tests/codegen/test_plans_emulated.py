"""Whole Plans, with generated kernels run on the CPU, give what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agrees, check
from emulator import COMPILER, Emulator
from plan_emulator import PlanEmulator

import tracegraph as tg
from lowering.codegen import unit_source
from lowering.lower import lower
from lowering.plan.nodes import Graph
from lowering.plan.plan import Plan
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Control, Elementwise, Op, Reduction, Sample, Scan, all_ops
from tracegraph.ir.types import type_of
from tracegraph.passes import optimize
from tracegraph.tracing import trace

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

RANDOM = np.random.default_rng(0)
FOLD_ULPS = 16


def lowered(function: Callable[..., Any], args: tuple[Any, ...], name: str) -> Plan:
    """The plan of a function of flat arguments and results."""
    types = [type_of(arg).strong() for arg in args]
    return lower(optimize(trace.trace_program(function, types, name)), "cuda")


# ---- every op that is not elementwise ----------------------------------------------------------


def _op_samples() -> dict[str, tuple[Op, Sample]]:
    return {
        f"{op.name}_{number}": (op, sample)
        for op in all_ops()
        if not isinstance(op.form, (Elementwise, Control))
        for number, sample in enumerate(op.samples())
    }


SAMPLES = _op_samples()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Plan], Emulator]:
    """The plans of all samples, and all of their kernels in one unit."""
    plans = {
        name: lowered(lambda *x, op=op, a=sample.attrs: [apply(op, *x, **a)], sample.operands, name)
        for name, (op, sample) in SAMPLES.items()
    }
    nodes = tuple(node for plan in plans.values() for node in plan.graph.nodes)
    together = Plan("ops", Graph(nodes, frozenset()), (), (), (), {}, 0, 64)
    return plans, Emulator(unit_source(together), tmp_path_factory.mktemp("ops"))


@pytest.mark.parametrize("name", SAMPLES)
def test_op_gives_what_its_reference_gives(
    name: str, compiled: tuple[dict[str, Plan], Emulator]
) -> None:
    plans, kernels = compiled
    op, sample = SAMPLES[name]
    run = PlanEmulator(plans[name], kernels)
    with np.errstate(all="ignore"):
        if isinstance(op.form, (Reduction, Scan)):  # folded in another order, rounded elsewhere
            found, expected = (
                run(*sample.operands)[0],
                op.reference(*sample.operands, **sample.attrs),
            )
            assert_agrees(found, expected, FOLD_ULPS)
        else:
            check(op, sample, lambda op, operands, attrs: run(*operands)[0])


# ---- programs --------------------------------------------------------------------------------


def softmax(x: Any, w: Any) -> Any:
    y = np.exp(x - np.max(x, axis=1, keepdims=True))
    return [(y / np.sum(y, axis=1, keepdims=True)) @ w, np.argmax(y, axis=0)]


def newton(x: Any) -> Any:
    def more(state: Any) -> Any:
        return np.max(np.abs(state[0] * state[0] - x)) > 1e-10

    def improve(state: Any) -> Any:
        return (state[0] + x / state[0]) / 2, state[1] + 1

    return list(tg.while_loop(more, improve, (x, 0)))


def nested_loops(x: Any, n: Any) -> Any:
    def outer(i: Any, total: Any) -> Any:
        return tg.fori_loop(0, i, lambda j, t: t + x * j, total)

    return [tg.fori_loop(0, n, outer, x * 0)]


def branches(x: Any, k: Any) -> Any:
    chosen = tg.switch(k, [lambda y: y + 1, lambda y: y[::-1], lambda y: y * np.sum(y)], x)
    return [tg.cond(np.sum(x) > 0, lambda y: np.cumsum(y), lambda y: -y, chosen)]


def running(x: Any) -> Any:
    def step(total: Any, row: Any) -> Any:
        total = total * 0.5 + row
        return total, np.max(total)

    last, highest = tg.scan(step, x[0], x)
    return [last, highest, np.concatenate([highest, last])]


def many_reductions(x: Any) -> Any:
    """Of which a block can hold so many that it has less than a warp."""
    return [np.argmax(x * k, axis=0) for k in range(110)]


def many_reductions_and_a_scan(x: Any, y: Any) -> Any:
    return [*(np.max(x * k, axis=1) for k in range(210)), np.cumsum(y)]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (softmax, (RANDOM.normal(size=(9, 40)), RANDOM.normal(size=(40, 5)))),
    "newton": (newton, (RANDOM.uniform(1, 9, 700),)),
    "nested_loops": (nested_loops, (RANDOM.normal(size=6), np.int64(5))),
    "branch_0": (branches, (RANDOM.normal(size=33), np.int64(0))),
    "branch_1": (branches, (np.abs(RANDOM.normal(size=33)), np.int64(1))),
    "branch_beyond": (branches, (RANDOM.normal(size=33), np.int64(7))),
    "running": (running, (RANDOM.normal(size=(12, 7)),)),
    "many_reductions": (many_reductions, (RANDOM.normal(size=(50, 77)),)),
    "many_reductions_and_a_scan": (
        many_reductions_and_a_scan,
        (RANDOM.normal(size=(50, 77)), RANDOM.normal(size=1500)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_what_it_gives_eagerly(name: str, tmp_path: Path) -> None:
    function, args = PROGRAMS[name]
    plan = lowered(function, args, name)
    kernels = Emulator(unit_source(plan), tmp_path)
    expected = function(*args)
    for seed in range(2):
        found = PlanEmulator(plan, kernels, seed)(*args)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
