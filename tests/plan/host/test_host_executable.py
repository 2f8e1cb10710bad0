"""Host executables: arguments, results, control flow, order of nodes, threads, closing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from random import Random

import ml_dtypes
import numpy as np
import pytest

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.backends.host import HostBackend
from lowering.lower import lower
from lowering.plan.nodes import Graph
from tracegraph import control
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.tracing.trace import trace_program

pytestmark = pytest.mark.usefixtures("each_host")

add, subtract, multiply, divide, less = (
    partial(apply, get(name)) for name in ("add", "subtract", "multiply", "divide", "less")
)
total, tanh, sin, log, negative, concatenate = (
    partial(apply, get(name)) for name in ("sum", "tanh", "sin", "log", "negative", "concatenate")
)


def plan_of(fun, *types):
    return lower(trace_program(fun, types, fun.__name__))


def outcomes(fun, *arguments):
    """The results with nodes in the plan's order, and in random ones."""
    plan = plan_of(fun, *(type_of(np.asarray(x)) for x in arguments))
    orders = [None, *(Random(seed) for seed in range(4))]
    return [HostBackend(poison=True, order=o).compile(plan)(arguments) for o in orders]


def test_loop_whose_condition_is_a_reduction():
    def grow(x):
        def small(state):
            return less(total(state[0], axes=(0,)), 1e4)

        def step(state):
            return add(multiply(state[0], 1.5), 1.0), add(state[1], 1)

        return control.while_loop(small, step, (x, np.int64(0)))

    x, steps = np.linspace(0, 1, 33), 0
    start = x.copy()
    y = x
    while y.sum() < 1e4:
        y, steps = y * 1.5 + 1.0, steps + 1
    for found, count in outcomes(grow, x):
        np.testing.assert_allclose(found, y)
        assert count == steps
    np.testing.assert_array_equal(x, start)


def test_loop_that_never_runs():
    def never(x):
        return (control.while_loop(lambda s: less(s, 0.0), lambda s: add(s, 1.0), x),)

    for (found,) in outcomes(never, np.float64(3.0)):
        assert found == 3.0


def test_loop_inside_a_loop_is_entered_anew():
    def nested(n):
        def outer(state):
            i, sum_ = state
            inner = control.while_loop(
                lambda s: less(s[0], i),
                lambda s: (add(s[0], 1), add(s[1], s[0])),
                (np.int64(0), sum_),
            )
            return add(i, 1), inner[1]

        return control.while_loop(lambda s: less(s[0], n), outer, (np.int64(0), np.int64(0)))

    expected = sum(k for i in range(7) for k in range(i))
    for _, found in outcomes(nested, np.int64(7)):
        assert found == expected


@pytest.mark.parametrize("index", [-4, 0, 1, 2, 9])
def test_switch_and_cond(index):
    def choose(i, x):
        def by_sign(v):
            return control.cond(less(total(v, axes=(0,)), 0.0), negative, lambda w: w, v)

        return (control.switch(i, [sin, tanh, by_sign], x),)

    x = np.array([-3.0, 1.0])
    expected = [np.sin(x), np.tanh(x), -x][min(max(index, 0), 2)]
    for (found,) in outcomes(choose, np.int64(index), x):
        np.testing.assert_allclose(found, expected)


def test_scan_stacks_what_each_step_gives():
    def running(xs):
        def step(carry, x):
            new = tanh(add(carry, x))
            return new, multiply(new, 2.0)

        return control.scan(step, np.zeros(4), xs)

    xs = np.random.default_rng(0).standard_normal((9, 4))
    carry, ys = np.zeros(4), []
    for row in xs:
        carry = np.tanh(carry + row)
        ys.append(carry * 2)
    for found, stacked in outcomes(running, xs):
        np.testing.assert_allclose(found, carry)
        np.testing.assert_allclose(stacked, ys)


def chain(x):
    """Needs its nodes in order: a loop between two kernels."""
    y = control.while_loop(
        lambda s: less(total(s, axes=(0,)), 100.0), lambda s: add(s, 1.0), multiply(x, 2.0)
    )
    return (multiply(y, 3.0),)


def test_random_order_finds_a_missing_edge():
    plan = plan_of(chain, ArrayType("float64", (8,)))
    loose = replace(plan, graph=Graph(plan.graph.nodes, frozenset()))
    x = np.zeros(8)
    expected = HostBackend().compile(plan)([x])[0]
    found = [HostBackend(poison=True, order=Random(s)).compile(loose)([x])[0] for s in range(8)]
    assert not all(np.array_equal(each, expected) for each in found)


def scaled(x, a):
    return (add(multiply(x, a), 1.0), concatenate(x, x, axis=0))


SCALED = (ArrayType("float32", (6,)), ArrayType("float32", ()))


@pytest.fixture
def executable():
    return HostBackend(poison=True).compile(plan_of(scaled, *SCALED))


def test_results_are_new_arrays(executable):
    x = np.arange(6, dtype=np.float32)
    first, second = executable([x, 2.0]), executable([x, 3.0])
    np.testing.assert_array_equal(first[0], x * 2 + 1)
    np.testing.assert_array_equal(second[0], x * 3 + 1)
    for array in (*first, *second):
        assert array.flags.writeable
        assert not np.shares_memory(array, x)
    assert not np.shares_memory(first[0], second[0])


def test_arguments_with_strides_numbers_and_foreign_arrays(executable):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.arange(6, dtype=np.float32)

    wide = np.arange(12, dtype=np.float32)
    np.testing.assert_array_equal(executable([wide[::2], np.float32(2)])[0], wide[::2] * 2 + 1)
    np.testing.assert_array_equal(executable([wide[5::-1], 2])[0], wide[5::-1] * 2 + 1)
    assert executable.stats() == {"launches": 2, "updates": 0, "bytes_copied": 48}
    frozen = np.arange(6, dtype=np.float32)
    frozen.flags.writeable = False
    expected = np.arange(6, dtype=np.float32) * 2 + 1
    np.testing.assert_array_equal(executable([frozen, 2])[0], expected)
    np.testing.assert_array_equal(executable([Foreign(), 2])[0], expected)


def test_wrong_arguments_are_named(executable):
    x = np.zeros(6, np.float32)
    with pytest.raises(TypeError, match="takes 2 arrays, got 1"):
        executable([x])
    with pytest.raises(TypeError, match=r"argument 0 of 'scaled' has dtype float64.*f32\[6\]"):
        executable([np.zeros(6), 1.0])
    with pytest.raises(ValueError, match=r"argument 0 of 'scaled' has shape \(5,\).*f32\[6\]"):
        executable([x[:5], 1.0])


def test_bfloat16_arguments():
    def double(x):
        return (add(x, x),)

    x = np.arange(5).astype(ml_dtypes.bfloat16)
    (found,) = HostBackend().compile(plan_of(double, type_of(x)))([x])
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, x + x)


def test_empty_arrays():
    def joined(x, y):
        return (add(concatenate(x, y, axis=0), 1.0), total(x, axes=(0, 1)))

    x, y = np.zeros((0, 3)), np.ones((2, 3))
    for found, zero in outcomes(joined, x, y):
        np.testing.assert_array_equal(found, y + 1)
        assert zero == 0


def test_floating_point_errors_are_silent():
    def risky(x):
        return (divide(x, subtract(x, x)), log(negative(x)))

    with np.errstate(all="raise"):
        for found, nan in outcomes(risky, np.ones(3)):
            assert np.isinf(found).all()
            assert np.isnan(nan).all()
        assert np.geterr()["divide"] == "raise"


def test_concurrent_calls_do_not_mix():
    x = np.linspace(0, 1, 1000)
    ready = HostBackend().compile(plan_of(chain, type_of(x)))
    arguments = [x * k for k in range(24)]
    expected = [ready([a])[0] for a in arguments]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda a: ready([a])[0], arguments))
    np.testing.assert_array_equal(found, expected)


def test_closed_executable_says_so(executable):
    executable.close()
    executable.close()
    with pytest.raises(RuntimeError, match="'scaled' was closed"):
        executable([np.zeros(6, np.float32), 1.0])
