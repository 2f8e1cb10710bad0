"""What the derivative of every registered op must satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.derivatives import SMOOTH, Case, cases, difference
from tracegraph.dtypes import bfloat16
from tracegraph.ir.derivative import Linear
from tracegraph.ir.op import Op, all_ops
from tracegraph.ir.types import type_of
from tracegraph.ir.verify import verify

each_smooth_op = pytest.mark.parametrize("op", SMOOTH, ids=lambda op: op.name)
DTYPES = (np.float64, np.complex128)


def wide(op: Op) -> list[Case]:
    return [case for dtype in DTYPES for case in cases(op, dtype)]


def drawn(case: Case, active: tuple[int, ...], rng: np.random.Generator) -> list[Any]:
    return [direction(case.operands[i], rng) for i in active]


def direction(x: Any, rng: np.random.Generator) -> Any:
    t = rng.uniform(-1, 1, np.shape(x))
    if x.dtype.kind == "c":
        t = t + 1j * rng.uniform(-1, 1, np.shape(x))
    return np.asarray(t, x.dtype)


def at(case: Case, active: tuple[int, ...]) -> list[Any]:
    return [case.operands[i] for i in active]


def test_every_op_has_a_derivative() -> None:
    assert not [op.name for op in all_ops() if op.derivative is None]


@each_smooth_op
def test_there_are_cases(op: Op) -> None:
    assert wide(op)


@each_smooth_op
def test_forward_mode_agrees_with_differences(op: Op) -> None:
    rng = np.random.default_rng(1)
    for case in wide(op):
        for active in case.subsets():
            function, x, t = case.of(active), at(case, active), drawn(case, active, rng)
            out, tangent = tracegraph.jvp(function, x, t)
            if getattr(op.derivative, "results", None) is None:
                np.testing.assert_array_equal(out, case.reference())
            else:
                np.testing.assert_allclose(out, case.reference(), rtol=1e-13)
            expected = difference(function, x, t)
            np.testing.assert_allclose(tangent, expected, rtol=1e-7, atol=1e-8, err_msg=str(active))


@each_smooth_op
def test_reverse_mode_is_the_transpose_of_forward_mode(op: Op) -> None:
    rng = np.random.default_rng(2)
    for case in wide(op):
        for active in case.subsets():
            function, x, t = case.of(active), at(case, active), drawn(case, active, rng)
            out, tangent = tracegraph.jvp(function, x, t)
            ct = direction(np.asarray(out), rng)
            _, pullback = tracegraph.vjp(function, *x)
            left = np.sum(ct * tangent).real
            right = sum(np.sum(c * d).real for c, d in zip(pullback(ct), t, strict=True))
            np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)


@each_smooth_op
def test_second_derivatives_agree_with_differences(op: Op) -> None:
    rng = np.random.default_rng(3)
    for case in [case for dtype in DTYPES for case in cases(op, dtype)[::2]]:
        active = case.inexact
        function, x = case.of(active), at(case, active)
        t, s = drawn(case, active, rng), drawn(case, active, rng)
        ct = direction(np.asarray(function(*x)), rng)

        def pushed(*x: Any, function: Any = function, t: Any = t) -> Any:
            return tracegraph.jvp(function, x, t)[1]

        def pulled(*x: Any, function: Any = function, ct: Any = ct) -> Any:
            return tracegraph.vjp(function, *x)[1](ct)[0]

        for first in (pushed, pulled):
            _, second = tracegraph.jvp(first, x, s)
            expected = difference(first, x, s)
            np.testing.assert_allclose(
                second, expected, rtol=1e-6, atol=1e-7, err_msg=first.__name__
            )


@pytest.mark.parametrize(
    "op", [op for op in SMOOTH if isinstance(op.derivative, Linear)], ids=lambda op: op.name
)
def test_the_tangent_of_a_linear_op_is_the_op(op: Op) -> None:
    record, rng = op.derivative, np.random.default_rng(4)
    assert isinstance(record, Linear)
    for case in wide(op):
        of = case.inexact if record.of is None else record.of
        active = tuple(i for i in case.inexact if i in of)
        if len(active) != len(of):
            continue
        function, x, t = case.of(active), at(case, active), drawn(case, active, rng)
        np.testing.assert_array_equal(tracegraph.jvp(function, x, t)[1], function(*t))
        twice = tracegraph.linear_transpose(
            tracegraph.linear_transpose(function, *x), np.asarray(function(*x))
        )
        np.testing.assert_allclose(twice((*t,))[0], function(*t), rtol=1e-14)


@each_smooth_op
def test_tangents_have_the_dtypes_of_their_values(op: Op) -> None:
    rng = np.random.default_rng(5)
    for dtype in (np.float16, bfloat16, np.float32, np.float64, np.complex64, np.complex128):
        for case in cases(op, dtype)[::2]:
            active = case.inexact
            function, x, t = case.of(active), at(case, active), drawn(case, active, rng)
            out, tangent = tracegraph.jvp(function, x, t)
            assert type_of(tangent) == type_of(out).strong()
            back = tracegraph.vjp(function, *x)[1](np.asarray(out))
            assert [type_of(g) for g in back] == [type_of(v) for v in x]


@each_smooth_op
def test_programs_of_derivatives_are_well_formed(op: Op) -> None:
    for case in wide(op)[:4]:
        function, x = case.of(case.inexact), at(case, case.inexact)

        def both(*x: Any, function: Any = function) -> Any:
            out, pullback = tracegraph.vjp(function, *x)
            return tracegraph.jvp(function, x, x), pullback(out)

        traced = tracegraph.jit(both, device="host").trace(*x)
        verify(traced.program)
        assert all(eqn.source is not None for eqn in traced.program.body.eqns)
