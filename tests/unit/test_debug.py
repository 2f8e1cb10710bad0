"""Prints, and the order of effects, by every way of running a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.fakes.fake_device import FakeCompiler
from tests.helpers.traced import trace
from tests.programs.by_hand import apply, region, value
from tracegraph import Array, control, debug, errors, tree
from tracegraph.ir import interpret
from tracegraph.ir.effects import TOKEN, Failure, PrintFormat
from tracegraph.ir.program import Program, walk
from tracegraph.ir.verify import verify
from tracegraph.passes import cse, dce, fold, inline, optimize, simplify, tidy_captures
from tracegraph.progress import Monitor

X = np.array([1.0, 2.0, 3.0])
PASSES = [dce, fold, tidy_captures, inline, simplify, cse, optimize]


def effects_of(traced: Program) -> list[str]:
    names = ("debug_print", "require", "report_step")
    return [eqn.op.name for eqn in walk(traced.body) if eqn.op.name in names]


def assert_same_output(
    capsys: pytest.CaptureFixture[str], function: Callable[..., Any], *args: Any
) -> str:
    """Require the lines of the eager run from the program and from each pass over it."""
    function(*args)
    wanted = capsys.readouterr().out
    traced = trace(function, *args)
    assert capsys.readouterr().out == "", "printed while tracing"
    for variant in (traced, *(verify(pass_(traced)) for pass_ in PASSES)):
        interpret.run(variant, *map(np.asarray, tree.leaves(args)))
        assert capsys.readouterr().out == wanted
    return wanted


@pytest.mark.parametrize(
    ("template", "argument", "text"),
    [
        ("{}", 3, "3"),
        ("{:>6.2f}|", 0.125, "  0.12|"),
        ("{}", True, "True"),
        ("{}", 1 - 2j, "(1-2j)"),
        ("{:.3f}", np.float32(0.5), "0.500"),
        ("{:d}", np.uint8(255), "255"),
        ("{}", X, "[1. 2. 3.]"),
        ("{0} {0}", np.zeros((0, 2)), "[] []"),
        ("{0.shape} {0[1]}", X, "(3,) 2.0"),
        ("{{{}}}", 2**64 - 1, f"{{{2**64 - 1}}}"),
    ],
)
def test_a_print_formats_numbers_and_arrays(
    capsys: pytest.CaptureFixture[str], template: str, argument: Any, text: str
) -> None:
    assert assert_same_output(capsys, lambda x: debug.print(template, x), argument) == f"{text}\n"


def test_a_print_takes_any_array_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    debug.print("{} {b} {a:.1f}", Array(X.copy()), a=Array(np.array(0.25)), b=2)
    assert capsys.readouterr().out == "[1. 2. 3.] 2 0.2\n"


def test_a_print_in_a_trace_is_recorded_even_if_nothing_in_it_is_traced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        debug.print("start")
        debug.print("constants {} {}", 1.5, np.arange(2))
        return x

    assert assert_same_output(capsys, f, X) == "start\nconstants 1.5 [0 1]\n"


def test_a_print_shows_the_value_at_its_point(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        debug.print("before {}", y)
        y[0] = 9.0
        debug.print("after {}", y)
        return y

    assert assert_same_output(capsys, f, X) == "before [2. 4. 6.]\nafter [9. 4. 6.]\n"


def test_a_traced_value_that_left_its_trace_cannot_be_printed() -> None:
    escaped: list[Any] = []
    trace(lambda x: escaped.append(x + 1), X)
    with pytest.raises(errors.EscapedTracerError, match="outside the function"):
        debug.print("{}", escaped[0])


def test_prints_at_any_depth_come_in_the_order_of_the_eager_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = np.arange(4.0).reshape(2, 2)

    def f(x: Any, n: Any) -> Any:
        debug.print("start {}", x)

        def outer(i: Any, state: Any) -> Any:
            debug.print("outer {}", i)

            def inner(total: Any, row: Any) -> Any:
                debug.print("row {} of {i}", row, i=i)

                def small() -> Any:
                    debug.print("small {}", total)
                    return total + row[0]

                total = control.cond(total < 3, small, lambda: total * 0)
                return total, None

            total, _ = control.scan(inner, state, table, reverse=True)
            branches = [lambda: debug.print("first"), lambda: None, lambda: debug.print("last")]
            control.switch(i, branches)
            return control.while_loop(
                lambda t: t > 4, lambda t: (debug.print("halve {}", t), t / 2)[1], total
            )

        y = control.fori_loop(0, n, outer, np.sum(x))
        shown = control.map(lambda v: (debug.print("map {}", v), v + y)[1], x)
        debug.print("end {}", shown)
        return shown

    for n in (0, 1, 4):
        text = assert_same_output(capsys, f, X, n)
        assert text.count("outer") == n
        assert text.startswith("start")


def test_effects_whose_values_nobody_needs_stay(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, p: Any) -> Any:
        control.scan(lambda c, v: (c + v, debug.print("scan {}", v)), 0.0, x)
        control.cond(p, lambda: debug.print("true"), lambda: None)
        control.fori_loop(0, 2, lambda i, c: (debug.print("loop {}", c), c * 2)[1], x[0])
        return x

    for p in (True, False):
        assert assert_same_output(capsys, f, X, p).count("\n") == 5 + p


def test_equal_prints_are_not_merged_and_equal_values_still_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        debug.print("{}", x + 1)
        debug.print("{}", x + 1)
        return x

    assert_same_output(capsys, f, X)
    names = [eqn.op.name for eqn in optimize(trace(f, X)).body.eqns]
    assert names == ["add", "broadcast_to", "debug_print", "debug_print"]


def test_a_branch_that_is_known_leaves_only_its_own_effects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        control.cond(True, lambda: debug.print("taken"), lambda: debug.print("not"))
        control.fori_loop(3, 3, lambda i, c: (debug.print("never"), c)[1], x)
        return x

    assert assert_same_output(capsys, f, X) == "taken\n"
    assert effects_of(optimize(trace(f, X))) == ["debug_print"]


@pytest.mark.parametrize("unroll", [1, 2, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 5])
def test_prints_in_scans(
    capsys: pytest.CaptureFixture[str], length: int, reverse: bool, unroll: int
) -> None:
    def f(x: Any) -> Any:
        def body(c: Any, v: Any) -> Any:
            debug.print("{} {}", c, v)
            return c + v, v

        return control.scan(body, 0.0, x, reverse=reverse, unroll=unroll)

    assert assert_same_output(capsys, f, np.arange(float(length))).count("\n") == length


def test_a_body_that_is_traced_twice_for_a_weak_carry_prints_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        return control.fori_loop(0, 2, lambda i, c: (debug.print("step {}", i), c + x)[1], 0)

    assert assert_same_output(capsys, f, np.float32(1.5)) == "step 0\nstep 1\n"


def test_nested_jitted_functions_print(
    capsys: pytest.CaptureFixture[str], compiler: FakeCompiler
) -> None:
    @tracegraph.jit
    def inner(x: Any) -> Any:
        debug.print("inner {}", x)
        return x + 1

    @tracegraph.jit
    def outer(x: Any) -> Any:
        y = control.cond(x[0] > 0, inner, lambda v: v, x)
        debug.print("outer {}", y)
        return y, {"n": 1}

    for _ in range(2):
        result, rest = outer(X)
        np.testing.assert_array_equal(np.asarray(result), X + 1)
        assert rest == {"n": 1}
        assert capsys.readouterr().out == "inner [1. 2. 3.]\nouter [2. 3. 4.]\n"
    assert outer.stats()["traces"] == 1


def test_the_token_is_a_hidden_result() -> None:
    plain = trace(lambda x: (x, x + 1), X)
    printing = trace(lambda x: (debug.print("{}", x), x, x + 1)[1:], X)
    assert not plain.effects
    assert printing.effects
    assert printing.out_types == plain.out_types
    assert printing.body.result_types == (*plain.out_types, TOKEN)
    assert optimize(printing).out_types == plain.out_types
    assert tracegraph.make_program(lambda x: x)(X).out_types == plain.out_types[:1]


def test_effects_print_as_equations() -> None:
    traced = trace(lambda x: debug.print("x = {}", x), X)
    assert "b: bool[0] = broadcast_to[shape=(0,)] False" in str(traced)
    assert "c: bool[0] = debug_print[format='x = {}'] b a" in str(traced)


def test_an_exception_while_tracing_effects_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(x: Any) -> Any:
        debug.print("{}", x)
        control.while_loop(lambda c: errors.__missing__, lambda c: c, x)

    with pytest.raises(AttributeError):
        trace(broken, X)
    debug.print("now {}", 1)
    assert capsys.readouterr().out == "now 1\n"


def test_the_verifier_wants_a_token_as_last_result() -> None:
    x = value("f64[3]")
    body = region([x], [], x)
    with pytest.raises(
        errors.VerificationError, match=r"last result must be the token .* bool\[0\]"
    ):
        verify(Program("f", body, effects=True))


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "message"),
    [
        ("debug_print", ["f64[3]"], {"format": PrintFormat("", 0, (), None)}, "must be a token"),
        ("debug_print", ["bool[0]"], {"format": PrintFormat("{}", 1, (), None)}, "takes 1 arrays"),
        ("require", ["bool[0]", "i64[]"], {"failure": Failure("E", "", None)}, r"bool\[\], not"),
        ("report_step", ["bool[0]", "i32[]"], {"monitor": Monitor("", 1, None, None)}, r"i64\[\]"),
    ],
)
def test_operands_of_effects_are_checked(
    name: str, operands: list[str], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        apply(name, *map(value, operands), **attrs)
