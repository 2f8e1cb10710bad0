"""Marks of lanes that run for nothing: where vmap puts them, and what passes make of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.vmap import VMAP_CASES
from tracegraph import cond, tree, vmap, while_loop
from tracegraph.ir import interpret
from tracegraph.ir.program import Program, walk
from tracegraph.ir.verify import verify
from tracegraph.passes import optimize, with_dead_lanes_isolated, without_marks

X = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, 3.0]])
W = np.array([2.0, -1.0])


def traced(function: Any, *args: Any) -> Program:
    return tracegraph.jit(function, device="host").trace(*args).program


def marks(program: Program) -> list[str]:
    """The ops that make what is marked."""
    made = {value: eqn.op.name for eqn in walk(program.body) for value in eqn.outputs}
    return [
        made.get(eqn.operands[1], "parameter")  # type: ignore[arg-type]
        for eqn in walk(program.body)
        if eqn.op.name == "live_lanes"
    ]


def logarithm(x: Any, w: Any) -> Any:
    return cond(x[0] > 0, lambda: np.log(x) * w, lambda: x + 1)


def descend(x: Any, w: Any) -> Any:
    return while_loop(lambda x: x.sum() > 1, lambda x: np.sqrt(x) - w, x)


def test_what_comes_in_is_marked_and_what_meets_floats_of_all_lanes() -> None:
    program = optimize(traced(vmap(logarithm, (0, None)), X, W))
    assert sorted(marks(program)) == ["log", "multiply", "parameter", "parameter"]
    loop = optimize(traced(vmap(descend, (0, None)), X, W))
    assert sorted(marks(loop)) == ["parameter", "sqrt", "subtract"]


def test_reads_of_a_shared_table_are_marked() -> None:
    def lane(i: Any, table: Any) -> Any:
        return cond(i > 0, lambda: table[i], lambda: 0.0)

    program = optimize(traced(vmap(lane, (0, None)), np.array([2, 0, 1]), np.ones(3)))
    assert marks(program) == ["gather"]


def test_shared_floats_that_become_those_of_lanes_are_marked() -> None:
    def lane(n: Any, w: Any) -> Any:
        return cond(n > 0, lambda: while_loop(lambda w: w < n, lambda w: w * 2, w), lambda: w)

    program = optimize(traced(vmap(lane, (0, None)), np.array([2.0, 0.0]), 0.5))
    assert "broadcast_to" in marks(program)


def test_all_lanes_that_run_are_not_marked() -> None:
    def lane(x: Any, w: Any) -> Any:
        return while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * w), (0, x))

    assert marks(traced(vmap(lane, (0, None)), X, W)) == []


def test_integers_are_not_marked() -> None:
    case = VMAP_CASES["collatz"]
    assert marks(traced(vmap(case.function), *case.arguments)) == []


@pytest.mark.parametrize("function", [logarithm, descend])
def test_nothing_is_marked_when_it_is_lowered(function: Any) -> None:
    stage = tracegraph.jit(vmap(function, (0, None)), device="host").trace(X, W)
    assert marks(stage.program)
    assert marks(stage.optimized) == []
    assert "where" in {eqn.op.name for eqn in walk(stage.optimized.body)}


@pytest.mark.parametrize("name", VMAP_CASES)
@pytest.mark.parametrize("change", [without_marks, with_dead_lanes_isolated])
def test_passes_change_no_bit_of_a_result(name: str, change: Any) -> None:
    case = VMAP_CASES[name]
    program = verify(traced(vmap(case.function, case.axes), *case.arguments))
    leaves = [np.asarray(leaf) for leaf in tree.leaves(case.arguments)]
    wanted = interpret.run(program, *leaves)
    found = interpret.run(verify(change(program)), *leaves)
    assert [x.tobytes() for x in found] == [x.tobytes() for x in wanted]


def test_isolated_lanes_compute_nothing_that_is_not_finite() -> None:
    program = with_dead_lanes_isolated(traced(vmap(logarithm, (0, None)), X, W))
    assert marks(program) == []
    products = [eqn for eqn in program.body.eqns if eqn.op.name == "multiply"]
    given = [eqn for eqn in program.body.eqns if eqn.outputs[0] is products[0].operands[0]]
    assert [eqn.op.name for eqn in given] == ["where"]


def test_marks_of_lanes_of_lanes() -> None:
    def inner(x: Any, w: Any) -> Any:
        return vmap(logarithm, (None, 0))(x, w)

    both = vmap(inner, (0, None))
    given = np.stack([W, -W])
    program = traced(both, X, given)
    (found,) = interpret.run(verify(without_marks(program)), X, given)
    with np.errstate(all="ignore"):
        wanted = [[logarithm(x, w) for w in given] for x in X]
    np.testing.assert_array_equal(found, wanted)
    assert marks(without_marks(program)) == []
