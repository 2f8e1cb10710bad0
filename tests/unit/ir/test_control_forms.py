"""The parts of branches and loops, by role; hints, which are no part of what is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import jit
from tracegraph.ir.control_forms import branch_parts, is_loop, loop_counts, loop_parts
from tracegraph.ir.interpret import run
from tracegraph.ir.program import Eqn, Hints, Program
from tracegraph.ir.text import attrs_text

X = np.linspace(-1.0, 1.0, 5)


def control_eqn(f: Any) -> tuple[Program, Eqn]:
    program = jit(f, device="host").trace(X).program
    (eqn,) = [eqn for eqn in program.body.eqns if eqn.regions]
    return program, eqn


def test_a_branch() -> None:
    _, eqn = control_eqn(lambda x: tracegraph.cond(x[0] > 0, lambda: x + 1, lambda: x - x[1]))
    parts = branch_parts(eqn)
    assert not is_loop(eqn)
    assert (parts.selector, *parts.captures) == eqn.operands
    assert parts.branches == eqn.regions
    assert [len(branch.params) for branch in parts.branches] == [len(parts.captures)] * 2


def test_a_while_loop() -> None:
    _, eqn = control_eqn(
        lambda x: tracegraph.while_loop(
            lambda c: c[1] < x[0], lambda c: (c[0] * x, c[1] + 1), (x, 0)
        )
    )
    loop = loop_parts(eqn)
    assert is_loop(eqn)
    assert (loop.entry, loop.xs, loop.stacked) == (None, (), ())
    assert (*loop.init, *loop.captures) == eqn.operands
    assert [atom.type.shape for atom in loop.init] == [(5,), ()]
    assert (loop.condition, loop.body) == eqn.regions
    assert loop.carried == eqn.outputs
    assert [v.type for v in loop.captured_params] == [a.type for a in loop.captures]
    assert loop_counts(eqn, 1) == {**eqn.attrs, "carry": 1}


def test_a_scan() -> None:
    _, eqn = control_eqn(lambda x: tracegraph.scan(lambda c, v: (c + v, c * x), x[0], x)[1])
    loop = loop_parts(eqn)
    assert (loop.condition, loop.entry) == (None, None)
    assert [len(part) for part in (loop.init, loop.xs, loop.captures)] == [1, 1, 1]
    assert [v.type.shape for v in (*loop.carried, *loop.stacked)] == [(), (5, 5)]
    assert [v.type.shape for v in loop.captured_params] == [(5,)]
    assert loop_counts(eqn, 0, 1) == {**eqn.attrs, "carry": 0}


HINTED = {
    "cond": (
        lambda x, **pins: tracegraph.cond(x[0] > 0, lambda: x + 1, lambda: x - 1, **pins),
        Hints("predicated"),
    ),
    "while_loop": (
        lambda x, **pins: tracegraph.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x, **pins),
        Hints("unrolled", 3),
    ),
    "fori_loop": (
        lambda x, **pins: tracegraph.fori_loop(0, 4, lambda i, c: c + i, x, **pins),
        Hints("unrolled", 2, "fori_loop"),
    ),
    "map": (
        lambda x, **pins: tracegraph.map(lambda v: v * v, x, **pins),
        Hints("unrolled", None, "map"),
    ),
}


@pytest.mark.parametrize("name", HINTED)
def test_hints_are_printed_and_change_no_result(name: str) -> None:
    function, hints = HINTED[name]
    pins = {k: v for k, v in hints.given().items() if k != "construct"}
    plain, free = control_eqn(function)
    program, pinned = control_eqn(lambda x: function(x, **pins))
    assert pinned.hints == hints
    assert free.hints == Hints(construct=hints.construct)
    assert free.attrs == pinned.attrs
    shown = attrs_text(pinned)
    assert all(f"{hint}={value}" in shown for hint, value in hints.given().items())
    assert f"{pinned.op.name}{shown} " in str(program)
    for got, wanted in zip(run(program, X), run(plain, X), strict=True):
        np.testing.assert_array_equal(got, wanted)
