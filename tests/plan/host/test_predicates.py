"""Nests with predicates on the host."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.kernel import Kernel, MapNest, Predicate, Store
from lowering.plan.nodes import KernelNode
from lowering.plan.target import overrides as choices
from tests.cases.host_nests import F64, ap, axes, buffer, run
from tracegraph.ir.scalar import const, select
from tracegraph.ir.scalar_values import Load

BOOL, I64 = np.dtype(np.bool_), np.dtype(np.int64)
X, OUT = buffer("input", 0, 8), buffer("output", 0, 8)
(I,) = axes(8)
AT = Load.make(X, (I,), None)
NUMBERS = np.linspace(0.0, 1.0, 8)


def mapped(target, value, *predicates):
    return MapNest((8,), (Store(target, (I,), value),), (), predicates)


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_a_result_that_each_branch_makes_wholly(chosen):
    """None of them may allocate it, since another may be the one that runs."""
    flag = buffer("input", 1, dtype=I64)
    ops = ["sin", "cos", "exp"]
    nests = [mapped(OUT, ap(op, AT), Predicate(flag, n)) for n, op in enumerate(ops)]
    (found,) = run(nests, (X, flag), (OUT,), [NUMBERS, np.array(chosen)])
    np.testing.assert_array_equal(found, getattr(np, ops[chosen])(NUMBERS))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_all_predicates_of_a_nest_must_hold(first, second):
    flags = [buffer("input", n, dtype=BOOL) for n in (1, 2)]
    predicates = [Predicate(flags[0], True), Predicate(flags[1], False)]
    nests = [mapped(OUT, const(-1.0, F64)), mapped(OUT, ap("sin", AT), *predicates)]
    arguments = [NUMBERS, np.array(first), np.array(second)]
    (found,) = run(nests, (X, *flags), (OUT,), arguments)
    runs = first and not second
    np.testing.assert_array_equal(found, np.sin(NUMBERS) if runs else np.full(8, -1.0))


@pytest.mark.parametrize("go", [False, True])
def test_nests_share_what_they_compute_only_where_both_run(go):
    flag, other = buffer("input", 1, dtype=BOOL), buffer("output", 1, 8)
    start = mapped(OUT, const(-1.0, F64))
    value = ap("sin", AT)
    both = Kernel("k", (mapped(OUT, value, Predicate(flag, True)), mapped(other, value)))
    nodes = [start, KernelNode(both)]
    found, always = run(nodes, (X, flag), (OUT, other), [NUMBERS, np.array(go)])
    np.testing.assert_array_equal(found, np.sin(NUMBERS) if go else np.full(8, -1.0))
    np.testing.assert_array_equal(always, np.sin(NUMBERS))


@pytest.mark.parametrize("go", [False, True])
def test_a_window_that_is_run_as_a_range_has_the_predicates_of_its_nest(go):
    source, flag = buffer("input", 0, 8, 40), buffer("input", 1, dtype=BOOL)
    out = buffer("output", 0, 8, 40)
    i, j = axes(8, 40)
    at = Load.make(source, (i, j), None)
    inner = select(j < 1, const(False, BOOL), j < 39)
    value = select(inner, ap("multiply", at, const(2.0, F64)), at)
    nests = [
        MapNest((8, 40), (Store(out, (i, j), const(-1.0, F64)),)),
        MapNest((8, 40), (Store(out, (i, j), value),), (), (Predicate(flag, True),)),
    ]
    x = np.random.default_rng(1).standard_normal((8, 40))
    (found,) = run(nests, (source, flag), (out,), [x, np.array(go)])
    wanted = np.full((8, 40), -1.0)
    if go:
        wanted[:] = x
        wanted[:, 1:39] *= 2
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("go", [False, True])
def test_nests_of_a_kernel_with_equal_predicates_all_run_or_none(go):
    flag = buffer("input", 1, dtype=BOOL)
    outs = tuple(buffer("output", n, 8) for n in range(3))
    ops, holds = ("sin", "cos", "exp"), Predicate(flag, True)
    start = Kernel("start", tuple(mapped(out, const(-1.0, F64)) for out in outs))
    nests = tuple(mapped(out, ap(op, AT), holds) for out, op in zip(outs, ops, strict=True))
    nodes = [KernelNode(start), KernelNode(Kernel("k", nests))]
    results = run(nodes, (X, flag), outs, [NUMBERS, np.array(go)])
    for found, op in zip(results, ops, strict=True):
        wanted = getattr(np, op)(NUMBERS) if go else np.full(8, -1.0)
        np.testing.assert_array_equal(found, wanted)


def test_predicates_deep_inside_loops():
    def deep(level, x):
        if not level:
            return tracegraph.cond(x.sum() < 4, lambda y: y + 1, lambda y: y * 2, x)
        return tracegraph.fori_loop(0, 1 + level % 2, lambda _, y: deep(level - 1, y), x)

    with choices.override(branches="predicated"):
        f = tracegraph.jit(lambda x: deep(8, x), device="host")
        for x in (np.zeros(2), np.full(2, 4.0)):
            np.testing.assert_array_equal(np.asarray(f(x)), deep(8, x))
