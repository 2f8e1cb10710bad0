"""Batched ops, loops, branches and effects on a GPU: each lane gives what it gives alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tracegraph
from tests.cases.vmap import VMAP_CASES
from tests.helpers.agreement import any_zero_on
from tests.helpers.batching import PLAIN, assert_same, check_batched_on, lanes_of, looped
from tests.helpers.compiled import on_gpu
from tests.helpers.parameters import one_of_each_kind
from tests.helpers.running import eager
from tracegraph import Array, cond, debug, errors, tree, vmap, while_loop
from tracegraph.ir.op import Elementwise, Op
from tracegraph.testing import RandomProgram, programs


def way_of_batching(op: Op) -> Any:
    """Elementwise ops with as many operands are batched alike; test_ops has their kernels."""
    return len(op.samples()[0].operands) if isinstance(op.form, Elementwise) else op


@pytest.mark.parametrize("op", one_of_each_kind(PLAIN, way_of_batching), ids=lambda op: op.name)
def test_lanes_of_an_op_are_those_of_the_reference(op: Op) -> None:
    check_batched_on(op, "cuda", any_zero_on("cuda"))


@pytest.mark.parametrize("name", VMAP_CASES)
def test_lanes_are_those_of_the_python_loop(name: str) -> None:
    case = VMAP_CASES[name]
    found = on_gpu(vmap(case.function, case.axes), *case.arguments)
    with np.errstate(all="ignore"):
        assert_same(found, looped(case.function, *case.arguments, axes=case.axes))


@pytest.mark.parametrize("name", VMAP_CASES)
def test_no_lanes(name: str) -> None:
    case = VMAP_CASES[name]
    none = [
        x if axis is None else tree.map(lambda leaf: leaf[:0], x)
        for x, axis in zip(case.arguments, case.axes, strict=True)
    ]
    for leaf in tree.leaves(on_gpu(vmap(case.function, case.axes), *none)):
        assert leaf.shape[0] == 0


@settings(max_examples=30)
@given(program=programs())
def test_lanes_of_random_programs(program: RandomProgram) -> None:
    given_ = [lanes_of(x) for x in program.arguments]
    found = on_gpu(vmap(program.function), *given_)
    assert_same(found, looped(lambda *args: eager(program.function, *args), *given_))


@settings(max_examples=10)
@given(program=programs(max_steps=4))
def test_lanes_of_lanes_of_random_programs(program: RandomProgram) -> None:
    given_ = [lanes_of(x) for x in program.arguments]
    twice = [np.stack([x, x[::-1]]) for x in given_]
    alone = looped(lambda *args: eager(program.function, *args), *given_)
    both = tree.map(lambda leaf: np.stack([leaf, leaf[::-1]]), alone)
    assert_same(on_gpu(vmap(vmap(program.function)), *twice), both)


def test_ten_thousand_lanes_stop_one_by_one() -> None:
    def collatz(n: Any) -> Any:
        def step(carry: Any) -> Any:
            n, steps = carry
            return np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return while_loop(lambda carry: carry[0] > 1, step, (n, 0))[1]

    numbers = np.arange(1, 10_001)
    found = on_gpu(vmap(collatz), numbers)
    np.testing.assert_array_equal(found[:100], [collatz(n) for n in numbers[:100]])
    np.testing.assert_array_equal(found, tracegraph.jit(vmap(collatz), device="host")(numbers))


def test_many_lanes_write_to_rows_of_their_own() -> None:
    def fill(x: Any, n: Any) -> Any:
        def step(carry: Any) -> Any:
            i, x = carry
            x[(7 * i) % 50] += n
            return i + 1, x

        return while_loop(lambda carry: carry[0] < n, step, (0, x))[1]

    x, n = np.zeros((6000, 50)), np.arange(6000) % 60
    found = on_gpu(vmap(fill), x, n)
    np.testing.assert_array_equal(found, np.tile(looped(fill, x[:60], n[:60]), (100, 1)))


def test_prints_of_live_lanes_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    def count(n: Any) -> Any:
        def step(i: Any) -> Any:
            debug.print("{} of {}", i, n)
            return i + 1

        return cond(n > 1, lambda: while_loop(lambda i: i < n, step, 0), lambda: n)

    np.testing.assert_array_equal(on_gpu(vmap(count), np.array([2, 1, 3])), [2, 1, 3])
    lines = ["0 of 2", "0 of 3", "1 of 2", "1 of 3", "2 of 3"]
    assert capsys.readouterr().out.splitlines() == lines


def test_a_lane_beyond_its_limit_of_steps_fails() -> None:
    def limited(n: Any) -> Any:
        return while_loop(lambda i: i < n, lambda i: i + 1, 0, max_steps=4)

    jitted = tracegraph.jit(vmap(limited), device="cuda")
    np.testing.assert_array_equal(np.asarray(jitted(np.array([1, 4, 0]))), [1, 4, 0])
    with pytest.raises(errors.StepLimitError, match="max_steps=4"):
        np.asarray(jitted(np.array([1, 5, 0])))


def test_arrays_on_the_device_stay_there_without_jit() -> None:
    x = tracegraph.asarray(np.arange(6.0).reshape(3, 2), device="cuda")
    found = vmap(lambda x, n: cond(x.sum() > 4, lambda: x * n, lambda: x), (0, None))(x, 2.0)
    assert isinstance(found, Array)
    assert found.device == x.device
    np.testing.assert_array_equal(np.asarray(found), [[0, 1], [4, 6], [8, 10]])
