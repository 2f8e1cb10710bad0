from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.programs.by_hand import apply, literal, out, program, region, value
from tracegraph.errors import ResultTypeError
from tracegraph.ir import interpret


def test_results_are_arrays_of_the_declared_types() -> None:
    x, c = value("f32[2]"), value("f32[2]")
    total = apply("add", x, c)
    p = program([x, c], [total], out(total), literal(3), constants=[np.ones(2, np.float32)])
    first, second = interpret.run(p, np.array([1, 2], np.float32))
    np.testing.assert_array_equal(first, np.array([2, 3], np.float32), strict=True)
    np.testing.assert_array_equal(second, np.array(3), strict=True)


@pytest.mark.parametrize("arrays", [[], [np.ones(3)], [np.ones(2, np.float32)], [np.ones(2)] * 2])
def test_inputs_of_other_types_are_an_error(arrays: list[np.ndarray]) -> None:
    x = value("f64[2]")
    with pytest.raises(TypeError, match=r"program solve takes \(f64\[2\]\), not \("):
        interpret.run(program([x], [], x), *arrays)


def test_a_reference_that_breaks_the_type_rule_is_an_error_that_names_the_equation() -> None:
    x = value("f64[2]")
    right = apply("sin", x, line=12)
    wrong = replace(right, op=replace(right.op, reference=lambda a: np.float32(1)))
    with pytest.raises(ResultTypeError) as error:
        interpret.run(program([x], [wrong], out(wrong)), np.ones(2))
    for fact in ("sin", "(f64[2])", "gave (f32[])", "solver.py:12"):
        assert fact in str(error.value)


@pytest.mark.parametrize(("index", "branch"), [(-7, 0), (0, 0), (1, 1), (2, 2), (99, 2)])
def test_switch_clamps(index: int, branch: int) -> None:
    i = value("i32[]")
    chosen = apply("switch", i, regions=[region([], [], literal(n)) for n in range(3)])
    (result,) = interpret.run(program([i], [chosen], out(chosen)), np.int32(index))
    assert result == branch


@pytest.mark.parametrize(("reverse", "stacked"), [(False, [0, 1, 3]), (True, [5, 3, 0])])
def test_scan_stacks_each_result_where_its_slice_was(reverse: bool, stacked: list[int]) -> None:
    xs, c, x = value("i64[3]"), value("i64[]"), value("i64[]")
    total = apply("add", c, x)
    attrs = {"carry": 1, "xs": 1, "length": 3, "reverse": reverse}
    scan = apply("scan", literal(0), xs, regions=[region([c, x], [total], out(total), c)], **attrs)
    last, before = interpret.run(program([xs], [scan], *scan.outputs), np.array([1, 2, 3]))
    assert last == 6
    assert before.tolist() == stacked


def test_long_programs_need_no_deep_stack() -> None:
    x = value("f64[]")
    eqns = [apply("add", x, literal(1.0))]
    for _ in range(20_000):
        eqns.append(apply("add", out(eqns[-1]), literal(1.0)))
    (result,) = interpret.run(program([x], eqns, out(eqns[-1])), np.float64(0))
    assert result == 20_001
