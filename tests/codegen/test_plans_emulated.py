"""Ops that are not elementwise, and programs, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from tests.helpers.agreement import assert_agrees, check
from tests.helpers.devices import Device
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Control, Elementwise, Op, Reduction, Sample, Scan, all_ops

RANDOM = np.random.default_rng(0)
FOLD_ULPS = 16

SAMPLES: dict[str, tuple[Op, Sample]] = {
    f"{op.name}_{number}": (op, sample)
    for op in all_ops()
    if not isinstance(op.form, (Elementwise, Control))
    for number, sample in enumerate(op.samples())
}


def arrays(sample: Sample) -> list[Any]:
    """The operands, none of them of a weak type."""
    return list(map(np.asarray, sample.operands))


OPS = {
    name: (lambda *x, op=op, attrs=sample.attrs: apply(op, *x, **attrs), arrays(sample))
    for name, (op, sample) in SAMPLES.items()
}


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
    """Their accumulators exceed the shared memory of a block of one warp."""
    return [np.argmax(x * k, axis=0) for k in range(100)]


def many_reductions_and_a_scan(x: Any, y: Any) -> Any:
    return [*(np.argmax(x * k, axis=1) for k in range(100)), np.cumsum(y)]


WHOLE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
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
PROGRAMS = {**OPS, **WHOLE}


@pytest.mark.parametrize("name", SAMPLES)
def test_op_gives_what_its_reference_gives(name: str, device: Device) -> None:
    op, sample = SAMPLES[name]
    with np.errstate(all="ignore"):
        if isinstance(op.form, (Reduction, Scan)):  # folded in another order, rounded elsewhere
            expected = op.reference(*sample.operands, **sample.attrs)
            assert_agrees(device.run(name, *arrays(sample)), expected, FOLD_ULPS)
        else:
            check(op, sample, lambda op, operands, attrs: device.run(name, *arrays(sample)))


@pytest.mark.parametrize("name", WHOLE)
def test_program_gives_what_it_gives_eagerly(name: str, device: Device) -> None:
    function, arguments = WHOLE[name]
    expected = function(*arguments)
    for seed in range(2):
        found = device.run(name, *arguments, order=Random(seed))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
