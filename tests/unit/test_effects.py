"""Effects: what is printed, checked and shown, and when, by every way of running a program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fake_device import FakeCompiler
from processes import end_of
from programs import apply, literal, out, program, region, value
from traced import trace

import tracegraph
from tracegraph import Array, control, debug, errors, limits, progress, tree
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


# ---- printing --------------------------------------------------------------------------------


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


# ---- order, in control flow ------------------------------------------------------------------


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


# ---- bounded loops ---------------------------------------------------------------------------


def doubled(x: Any, limit: Any, max_steps: int, on_max_steps: Any) -> Any:
    return control.while_loop(
        lambda c: c["x"] < limit,
        lambda c: {"x": c["x"] * 2, "n": c["n"] + 1},
        {"x": x, "n": 0},
        max_steps=max_steps,
        on_max_steps=on_max_steps,
    )


@pytest.mark.parametrize("on_max_steps", ["raise", "stop"])
@pytest.mark.parametrize("max_steps", [0, 1, 3, 4, 5, 2**70])
@pytest.mark.parametrize("limit", [0.5, 8.0, 16.0, np.nan])
def test_max_steps_bounds_a_loop(limit: float, max_steps: int, on_max_steps: str) -> None:
    needed = {0.5: 0, 8.0: 3, 16.0: 4}.get(limit, 0)
    args = (1.0, limit, max_steps, on_max_steps)
    traced = trace(lambda x, limit: doubled(x, limit, max_steps, on_max_steps), 1.0, limit)
    runs = [
        lambda: doubled(*args),
        lambda: dict(zip("nx", interpret.run(traced, *map(np.float64, args[:2])), strict=True)),
        lambda: dict(
            zip("nx", interpret.run(optimize(traced), *map(np.float64, args[:2])), strict=True)
        ),
    ]
    for run in runs:
        if needed > max_steps and on_max_steps == "raise":
            with pytest.raises(errors.StepLimitError):
                run()
        else:
            result, steps = run(), min(needed, max_steps)
            assert (int(result["n"]), float(result["x"])) == (steps, 2.0**steps)


def test_the_error_at_the_limit_names_both_functions_and_the_way_out() -> None:
    def still_growing(c: Any) -> Any:
        return c < 100

    def grow(c: Any) -> Any:
        return c + 1

    def loop(c: Any) -> Any:
        return control.while_loop(still_growing, grow, c, max_steps=7)

    for run in (lambda: loop(0), lambda: interpret.run(trace(loop, 0), np.int64(0))):
        with pytest.raises(errors.StepLimitError) as error:
            run()
        assert isinstance(error.value, RuntimeError)
        for fact in (
            "still_growing (test_effects.py:",
            "grow (test_effects.py:",
            "max_steps=7",
            "on_max_steps='stop'",
            "in loop",
        ):
            assert fact in str(error.value)


def test_a_condition_that_always_holds_can_be_bounded() -> None:
    def f(x: Any) -> Any:
        return control.while_loop(
            lambda c: True, lambda c: c + 1, x, max_steps=5, on_max_steps="stop"
        )

    np.testing.assert_array_equal(f(X), X + 5)
    np.testing.assert_array_equal(interpret.run(trace(f, X), X)[0], X + 5)


def test_the_condition_runs_once_a_step_and_once_at_the_end() -> None:
    log: list[float] = []

    def goes_on(c: float) -> bool:
        log.append(c)
        return c < 3

    control.while_loop(goes_on, lambda c: c + 1, 0, max_steps=9)
    assert log == [0, 1, 2, 3]
    log.clear()
    control.while_loop(goes_on, lambda c: c + 1, 0, max_steps=2, on_max_steps="stop")
    assert log == [0, 1]
    log.clear()
    with pytest.raises(errors.StepLimitError):
        control.while_loop(goes_on, lambda c: c + 1, 0, max_steps=2)
    assert log == [0, 1, 2]


def test_the_limit_of_steps_stands_on_the_equation() -> None:
    traced = trace(lambda x: doubled(x, 8.0, 5, "stop"), 1.0)
    (loop,) = (eqn for eqn in traced.body.eqns if eqn.op.name == "while_loop")
    assert loop.attrs["max_steps"] == 5
    assert not traced.effects
    assert effects_of(trace(lambda x: doubled(x, 8.0, 5, "raise"), 1.0)) == ["require"]


def test_a_failing_inner_loop_fails_after_what_was_printed_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def f(x: Any) -> Any:
        def outer(i: Any, c: Any) -> Any:
            debug.print("outer {}", i)
            return control.while_loop(lambda c: c < i * i, lambda c: c + 1, c, max_steps=3)

        y = control.fori_loop(0, 9, outer, x * 0)
        debug.print("not reached")
        return y

    def output(run: Callable[[], Any]) -> str:
        with pytest.raises(errors.StepLimitError):
            run()
        return capsys.readouterr().out

    def g(x: Any) -> Any:
        return control.cond(x > 0, lambda: f(x), lambda: x)

    wanted = output(lambda: f(1.0))
    assert wanted == "outer 0\nouter 1\nouter 2\nouter 3\n"
    for function in (f, g):
        for variant in (trace(function, 1.0), optimize(trace(function, 1.0))):
            assert output(lambda v=variant: interpret.run(v, np.float64(1.0))) == wanted


# ---- progress --------------------------------------------------------------------------------


LOOPS: dict[str, tuple[Callable[[Any, Any], Any], list[tuple[int, int | None]]]] = {
    "while_loop": (
        lambda x, p: control.while_loop(lambda c: c[0] < 4, lambda c: c + 1, x, progress=p),
        [(1, None), (2, None), (3, None)],
    ),
    "bounded while_loop": (
        lambda x, p: control.while_loop(
            lambda c: c[0] < 9, lambda c: c + 1, x, max_steps=2, on_max_steps="stop", progress=p
        ),
        [(1, None), (2, None)],
    ),
    "fori_loop": (
        lambda x, p: control.fori_loop(2, 5, lambda i, c: c + i, x, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "scan": (
        lambda x, p: control.scan(lambda c, v: (c + v, c), 0.0, x, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "reverse scan": (
        lambda x, p: control.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "map": (
        lambda x, p: control.map(lambda v: v + 1, x, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "nothing": (lambda x, p: control.fori_loop(0, 0, lambda i, c: c, x, progress=p), []),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_callback_is_told_each_step(name: str) -> None:
    loop, wanted = LOOPS[name]
    told: list[tuple[int, int | None]] = []

    def callback(step: int, total: int | None) -> None:
        told.append((step, total))

    plain = loop(X, False)
    results = [loop(X, callback)]
    assert told == wanted
    traced = trace(lambda x: loop(x, callback), X)
    for variant in (traced, verify(optimize(traced))):
        told.clear()
        results.append(interpret.run(variant, X))
        assert told == wanted
    for result in results:
        for got, expected in zip(tree.leaves(result), tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_callback_need_not_be_hashable() -> None:
    class Log(list[int]):
        def __call__(self, step: int, total: int | None) -> None:
            self.append(step)

    log = Log()

    def f(x: Any) -> Any:
        return control.map(lambda v: v, x, progress=log), control.map(lambda v: v, x, progress=log)

    interpret.run(verify(optimize(trace(f, X))), X)
    assert log == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("reverse", "unroll", "wanted"), [(False, 2, [2, 4, 5]), (True, 2, [1, 3, 5]), (False, 9, [5])]
)
def test_an_unrolled_scan_reports_once_an_iteration(
    reverse: bool, unroll: int, wanted: list[int]
) -> None:
    told: list[int] = []

    def f(x: Any) -> Any:
        return control.scan(
            lambda c, v: (c + v, v),
            0.0,
            x,
            reverse=reverse,
            unroll=unroll,
            progress=lambda step, total: told.append(step),
        )

    interpret.run(trace(f, np.arange(5.0)), np.arange(5.0))
    assert told == wanted


def test_the_total_of_a_traced_bound_is_not_known() -> None:
    told: list[tuple[int, int | None]] = []

    def f(n: Any) -> Any:
        return control.fori_loop(0, n, lambda i, c: c, 0.0, progress=lambda *a: told.append(a))

    interpret.run(trace(f, 2), np.int64(2))
    assert told == [(1, None), (2, None)]


class FakeTqdm:
    """Keeps what the real one would draw."""

    made: list[FakeTqdm]

    def __init__(self, desc: str, total: int | None) -> None:
        self.desc, self.total, self.n = desc, total, 0
        self.log: list[Any] = []
        self.made.append(self)

    def update(self, n: int) -> None:
        self.n += n
        self.log.append(self.n)

    def reset(self, total: int | None) -> None:
        self.n = 0
        self.log.append("reset")

    def close(self) -> None:
        self.log.append("close")


@pytest.fixture
def tqdm(monkeypatch: pytest.MonkeyPatch) -> type[FakeTqdm]:
    parent, module = ModuleType("tqdm"), ModuleType("tqdm.auto")
    module.tqdm = FakeTqdm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", parent)
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    FakeTqdm.made = []
    return FakeTqdm


def nested(x: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        return control.fori_loop(0, 2, lambda j, c: c + j, c, progress="inner")

    return control.fori_loop(0, 2, outer, x, progress=True)


def test_bars_of_tqdm_are_drawn_and_closed(tqdm: type[FakeTqdm]) -> None:
    nested(X)
    assert [(bar.desc, bar.total, bar.log) for bar in tqdm.made] == [
        (tqdm.made[0].desc, 2, [1, 2, "close"]),
        ("inner", 2, [1, 2, "close"]),
        ("inner", 2, [1, 2, "close"]),
    ]
    assert tqdm.made[0].desc.startswith("outer (test_effects.py:")


def test_a_loop_that_is_entered_again_in_a_program_keeps_its_bar(tqdm: type[FakeTqdm]) -> None:
    interpret.run(trace(nested, X), X)
    inner, outer = tqdm.made
    assert inner.log == [1, 2, "reset", 1, 2, "close"]
    assert outer.log == [1, 2, "close"]


def test_a_bar_is_closed_when_the_loop_fails(tqdm: type[FakeTqdm]) -> None:
    def broken(i: Any, c: Any) -> Any:
        raise KeyError("broken")

    with pytest.raises(KeyError):
        control.fori_loop(0, 2, broken, X, progress=True)
    assert tqdm.made[0].log == ["close"]


@pytest.mark.parametrize(("interval", "lines"), [(0.0, ["1/3", "2/3", "3/3"]), (1e9, ["3/3"])])
def test_without_tqdm_lines_are_written_now_and_then_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    interval: float,
    lines: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(progress, "INTERVAL", interval)
    control.fori_loop(0, 3, lambda i, c: c, X, progress="fit")
    assert capsys.readouterr().err.splitlines() == [f"fit: {line} steps" for line in lines]


def test_a_report_outside_of_a_run_is_shown_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[int] = []
    progress.report(Monitor("loop", None, lambda step, total: told.append(step), None), 3)
    assert told == [3]


# ---- limits of time --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: control.while_loop(lambda c: True, lambda c: c + 1, x),
        lambda x: control.fori_loop(0, 2**62, lambda i, c: c + 1, x),
        lambda x: control.scan(lambda c, v: (c + v, None), 0.0, x),
        lambda x: control.map(lambda v: v, x),
    ],
)
def test_loops_end_when_the_time_is_up(loop: Callable[[Any], Any]) -> None:
    traced = trace(loop, X)
    for run in (lambda: loop(X), lambda: interpret.run(traced, X)):
        for zero in (0, 0.0, np.float32(0), np.int64(0)):
            with pytest.raises(errors.TimeLimitError, match="of 0 s"), limits.time_limit(zero):
                run()


def test_the_first_of_nested_limits_counts() -> None:
    assert limits.deadline() is None
    with tracegraph.time_limit(1000):
        outer = limits.deadline()
        with tracegraph.time_limit(float("inf")):
            assert limits.deadline() == outer
        with tracegraph.time_limit(10):
            inner = limits.deadline()
            assert inner is not None
            assert outer is not None
            assert inner < outer
            assert "10 s" in str(limits.exceeded())
        assert limits.deadline() == outer
        limits.check()
    assert limits.deadline() is None
    limits.check()


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        ("1", TypeError),
        (None, TypeError),
        (True, TypeError),
        (-1, ValueError),
        (np.nan, ValueError),
    ],
)
def test_a_limit_of_time_is_a_number(seconds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="time_limit: seconds"), limits.time_limit(seconds):
        pass


def test_importing_the_package_imports_nothing_that_effects_may_need() -> None:
    code = (
        "import sys, tracegraph; print([m for m in ('tqdm', 'cuda', 'nvmath') if m in sys.modules])"
    )
    assert end_of(code) == (0, "[]\n", "")


def test_effects_in_hand_made_programs_keep_their_order() -> None:
    told: list[int] = []
    monitor = Monitor("loop", None, lambda step, total: told.append(step), None)
    token = value("bool[0]")
    first = apply("report_step", token, literal(np.int64(2)), monitor=monitor)
    second = apply("report_step", out(first), literal(np.int64(1)), monitor=monitor)
    made = program([token], [first, second], out(second))
    assert "report_step[monitor='loop'] a 2" in str(made)
    interpret.run(optimize(made), np.zeros(0, bool))
    assert told == [2, 1]
