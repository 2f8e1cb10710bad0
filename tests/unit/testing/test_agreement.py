"""`assert_traced_equals_eager` finds what differs: where, by how much, and in which way."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from tests.programs.printing import steps
from tracegraph import debug, errors
from tracegraph.testing import assert_traced_equals_eager
from tracegraph.testing.trials import Trial
from tracegraph.testing.ways import LOWERINGS, WAYS

X = np.arange(12.0).reshape(3, 4)

HOST_WAYS = [name for name, way in WAYS.items() if not way.on_gpu]


def double(x: Any) -> Any:
    return {"y": x * 2}


def failure(function: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_traced_equals_eager(function, *args, **options)
    return str(caught.value)


def changed(change: Any) -> Any:
    """A way that gives something else in its result's entry y."""
    return {"changed": lambda f, x: {"y": change(f(x)["y"])}}


def add_at(y: Any, place: Any, number: Any) -> Any:
    y[place] += number
    return y


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda y: add_at(y, (1, 2), 1),
            "  result['y'] at [1, 2]: eagerly 12.0, now 13.0, 1 apart where 2 ulp may be;"
            " 1 of the 12 elements of f64[3,4] differ",
        ),
        (
            lambda y: add_at(y, 2, [0, np.nan, np.inf, 0]),
            "  result['y'] at [2, 1]: eagerly 18.0, now nan; 2 of the 12 elements of f64[3,4] "
            "differ; 1 are NaN in one of the two only",
        ),
        (lambda y: y.astype("f4"), "  result['y']: eagerly f64[3,4], now f32[3,4]"),
        (lambda y: y[:2], "  result['y']: eagerly f64[3,4], now f64[2,4]"),
    ],
)
def test_a_difference_is_told_with_its_place(change: Any, line: str) -> None:
    first, *lines = failure(double, X, ways=changed(change)).splitlines()
    assert first == (
        f"double (test_agreement.py:{double.__code__.co_firstlineno}) differs from the eager run "
        "when it runs in a way of the test's own ('changed'):"
    )
    assert lines == [line]


def test_integers_and_structures_are_exact() -> None:
    assert "result['y'] at [3]: eagerly 6, now 5; 1 of the 4 elements of i64[4] differ" in failure(
        double, np.arange(4), ways=changed(lambda y: add_at(y, 3, -1))
    )
    assert "eagerly the result is" in failure(double, X, ways={"list": lambda f, x: [f(x)["y"]]})


def test_at_most_five_leaves_are_shown() -> None:
    text = failure(lambda x: [x] * 8, 1.5, ways={"other": lambda f, x: [x + 1] * 8})
    assert text.count("eagerly 1.5, now 2.5") == 5
    assert "and 3 more leaves" in text


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_ulps_are_units_of_the_dtype(dtype: str) -> None:
    x = np.ones(3, dtype)
    unit = np.spacing(np.ones((), np.zeros((), dtype).real.dtype))
    off = {"off": lambda f, x: f(x) + 3 * unit}
    assert_traced_equals_eager(lambda x: x, x, ulps=3, ways=off)
    assert "3 ulp apart where 2 ulp may be" in failure(lambda x: x, x, ways=off)


def test_tolerances_are_for_floating_point_numbers_only() -> None:
    nearly = {"nearly": lambda f, x: f(x) * np.float64(1 + 1e-9)}
    assert_traced_equals_eager(np.exp, np.arange(3.0), rtol=1e-8, ways=nearly)
    assert_traced_equals_eager(np.exp, np.arange(3.0), atol=1e-7, ways=nearly)
    assert "where 0 ulp may be" in failure(np.exp, np.arange(3.0), ulps=0, ways=nearly)
    assert "where rtol=1e-10 may be" in failure(np.exp, X, ulps=0, rtol=1e-10, ways=nearly)
    one_more = {"more": lambda f, x: f(x) + 1}
    assert "eagerly 5, now 6" in failure(lambda x: x, np.int64(5), atol=9.0, ways=one_more)


def test_nan_equals_nan_and_zeros_are_equal() -> None:
    x = np.array([np.nan, -0.0, np.inf])
    other = {"other": lambda f, x: np.array([np.nan, 0.0, np.inf])}
    assert_traced_equals_eager(lambda x: x, x, ulps=0, ways=other)
    assert "eagerly inf, now -inf" in failure(lambda x: x, x, ways={"minus": lambda f, x: -x})


def test_the_eager_run_gets_copies_and_no_way_may_write_to_arguments() -> None:
    x = np.arange(3.0)

    def clear(y: Any) -> Any:
        y[1] = 0.0
        return y

    assert_traced_equals_eager(clear, x, ways={"copied": lambda f, y: f(y.copy())})
    assert x[1] == 1.0
    text = failure(clear, x, ways={"written": lambda f, y: f(y).copy()})
    assert "it has written to an argument, which was [0. 1. 2.]" in text


def test_every_way_runs_and_agrees() -> None:
    """The eager result comes back; prints, loops, branches, and arguments by keyword agree."""
    found = assert_traced_equals_eager(steps, np.arange(5.0), kwargs={"n": 4})
    np.testing.assert_array_equal(found, steps(np.arange(5.0), 4))
    assert [name for name in HOST_WAYS if WAYS[name].possible(Trial(steps, (X[0], 4), {}))] == [
        *HOST_WAYS
    ]


def test_ways_of_loops_are_for_programs_with_loops() -> None:
    def possible(function: Any) -> set[str]:
        trial = Trial(function, (X,), {})
        return {name for name in LOWERINGS if WAYS[name].possible(trial)}

    assert possible(lambda x: x + 1) == set()
    assert possible(lambda x: tracegraph.cond(x[0, 0] > 0, lambda: x, lambda: -x)) == {
        *("conditional", "predicated", "no_body_updates", "host_driven")
    }
    assert possible(lambda x: tracegraph.scan(lambda c, y: (c, y), 0, x)[1]) == {
        *LOWERINGS.keys() - {"predicated"}
    }


@pytest.mark.parametrize("way", HOST_WAYS)
def test_a_fault_of_each_way_is_found(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters and executables that are off by one, after what they return is made."""
    from tracegraph.ir import interpret

    def off_by_one(leaves: Any) -> Any:
        return [leaf + 1 for leaf in leaves]

    run, call = interpret.run, HostExecutable.__call__
    monkeypatch.setattr(interpret, "run", lambda *a: off_by_one(run(*a)))
    monkeypatch.setattr(HostExecutable, "__call__", lambda *a: off_by_one(call(*a)))
    quiet = lambda x: tracegraph.fori_loop(  # noqa: E731
        0, 3, lambda i, c: tracegraph.cond(c[0] > 1, lambda c: c + 1, lambda c: c * 2, c), x
    )
    text = failure(quiet, np.ones(3), ways=way)
    assert f"({way!r}):" in text
    assert "result at [0]: eagerly" in text
    assert f"this way alone: assert_traced_equals_eager(…, ways={way!r})" in text
    if WAYS[way].setting:
        assert f"runs like it under {WAYS[way].setting}" in text


@pytest.mark.parametrize("way", sorted(WAYS.keys() - HOST_WAYS))
def test_ways_of_a_gpu_where_the_host_stands_for_one(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracegraph.testing import ways

    monkeypatch.setattr(
        Trial, "jitted", lambda trial, _: tracegraph.jit(trial.given, device="host")
    )
    monkeypatch.setattr(ways, "Stream", lambda _: tracegraph.Stream("host"))
    assert_traced_equals_eager(steps, np.arange(5.0), 4, ways=way)
    text = failure(lambda x: x + (not isinstance(x, int)), 0, ways=way)
    assert f"({way!r}):" in text


def test_ways_that_differ_and_that_agree_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    call = HostExecutable.__call__
    monkeypatch.setattr(HostExecutable, "__call__", lambda *a: [-leaf for leaf in call(*a)])
    text = failure(lambda x: x + 1, X)
    assert "('host'):" in text
    assert "also different: poisoned, any_order, unfused, planned_for_cuda" in text
    assert "as eagerly: interpreted, optimized" in text


def test_runs_of_one_plan_must_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    call = HostExecutable.__call__

    def drift(*a: Any) -> Any:
        calls.append(a)
        return [leaf + np.spacing(leaf) * (len(calls) - 1) for leaf in call(*a)]

    monkeypatch.setattr(HostExecutable, "__call__", drift)
    text = failure(lambda x: x + 1, X, ways="poisoned")
    assert "run 2 gives other bits than the first" in text


def test_settings_give_the_plans_of_their_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowering.legalization.legalize import legalize
    from lowering.lower import lower
    from lowering.plan.target.features import Features, declared

    trial = Trial(steps, (np.arange(5.0), 4), {})
    for way in LOWERINGS.values():
        if not way.setting:
            continue
        name, _, value = way.setting.partition("=")
        with monkeypatch.context() as patch:
            patch.setenv(name, value.strip('"'))
            if way.missing:
                assert declared() == way.missing
                continue
            plan = legalize(lower(trial.optimized, "cuda"), Features(**declared()))
        assert str(plan) == str(way.plan(trial))


# prints


def test_prints_that_differ_are_shown() -> None:
    def show(x: Any) -> Any:
        debug.print("x = {}", x)
        return x

    def silent(f: Any, x: Any) -> Any:
        return x

    def other(f: Any, x: Any) -> Any:
        print("x = 2")
        return x

    text = failure(show, 1, ways={"silent": silent})
    assert "prints: eagerly 1 lines, now 0; 'x = 1' is there only eagerly" in text
    assert "line 1 of the prints: eagerly 'x = 1', now 'x = 2'" in failure(
        show, 1, ways={"other": other}
    )


def test_prints_of_python_are_told_to_run_while_tracing() -> None:
    def show(x: Any) -> Any:
        print("norm", x.shape)
        return x

    text = failure(show, X)
    assert "hint: Python's print() in it ran while it was traced ('norm (3, 4)')" in text
    assert "tracegraph.debug.print" in text


# errors


def endless(x: Any) -> Any:
    debug.print("start {}", x)
    return tracegraph.while_loop(lambda x: x > 0, lambda x: x + 1, x, max_steps=5)


def test_an_error_that_is_expected_must_come_in_every_way() -> None:
    assert assert_traced_equals_eager(endless, 1, raises=errors.StepLimitError) is None
    assert assert_traced_equals_eager(endless, -1, raises=errors.StepLimitError) == -1
    text = failure(endless, 1, raises=errors.StepLimitError, ways={"none": lambda f, x: x})
    assert "eagerly it raises StepLimitError: while_loop: " in text
    assert "now it returns i64[]" in text


def test_an_error_that_is_not_expected_is_that_of_the_eager_run() -> None:
    with pytest.raises(errors.StepLimitError, match="max_steps=5"):
        assert_traced_equals_eager(endless, 1)
    with pytest.raises(NameError, match="undefined"):
        assert_traced_equals_eager(lambda x: undefined, 1)  # type: ignore[name-defined]  # noqa: F821


def test_users_messages_must_be_equal_and_numpys_need_not() -> None:
    def refuse(x: Any) -> Any:
        raise ValueError(f"not a {type(x).__name__}")

    text = failure(refuse, X, raises=ValueError)
    assert "eagerly it raises ValueError: not a ndarray, traced it raises" in text
    assert_traced_equals_eager(lambda x: x + np.ones(5), X, raises=ValueError)


def test_what_cannot_be_traced_is_said_with_the_reason() -> None:
    with pytest.raises(AssertionError, match="cannot be traced") as caught:
        assert_traced_equals_eager(lambda x: x if x.sum() > 0 else -x, X)
    assert isinstance(caught.value.__cause__, errors.TracerBoolError)
    assert "eagerly it returns f64[3,4], traced it raises\n  TracerBoolError: `if" in str(
        caught.value
    )


# hints


def test_sums_are_named_where_rounding_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    call = HostExecutable.__call__
    nearly = lambda *a: [leaf * (1 + 1e-12) for leaf in call(*a)]  # noqa: E731
    monkeypatch.setattr(HostExecutable, "__call__", nearly)
    text = failure(lambda x: np.exp(np.sum(x / 100)), X, ways="poisoned")
    assert "hint: sum at test_agreement.py:" in text
    assert "rtol= or ulps=" in text
    assert "hint" not in failure(np.exp, X, ways="poisoned")


def test_prints_of_sums_are_to_have_fewer_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(x: Any) -> Any:
        debug.print("{}", np.sum(x))
        return x

    call = HostExecutable.__call__

    def nearly(*a: Any) -> Any:
        print(66.00000000000001)
        with redirect_stdout(StringIO()):
            return call(*a)

    monkeypatch.setattr(HostExecutable, "__call__", nearly)
    text = failure(show, X, ways="poisoned")
    assert "line 1 of the prints: eagerly '66.0', now '66.00000000000001'" in text
    assert "allow for it by fewer digits, as in {:.6g}" in text


def test_what_no_rounding_explains_is_called_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    call = HostExecutable.__call__
    monkeypatch.setattr(HostExecutable, "__call__", lambda *a: [-leaf for leaf in call(*a)])
    text = failure(np.sum, X)
    assert "this is a bug of tracegraph, please report it" in text
    assert "another order" not in text
    assert "hint" not in failure(np.exp, X, ways="poisoned")  # the program itself was not run


def test_functions_of_more_than_their_arguments_are_found() -> None:
    seen: list[Any] = []

    def remember(x: Any) -> Any:
        seen.append(1)
        return x + len(seen)

    assert "hint: a second eager run differs from the first" in failure(remember, 1)
    assert "such as np.random" in failure(lambda x: x + np.random.default_rng().random(), 1)


def test_code_that_ran_without_values_is_named() -> None:
    def guess(x: Any) -> Any:
        try:
            return x * int(x[0])
        except TypeError:
            return x * 7

    text = failure(guess, np.arange(1, 4))
    assert "hint: the program that was traced differs, before anything is planned" in text
    assert "('interpreted'):" in text


def test_indices_out_of_range_are_explained() -> None:
    def read(x: Any, i: Any) -> Any:
        return x[i]

    text = failure(read, X, 5, raises=IndexError)
    assert "hint: traced indices out of range do not raise" in text
    with tracegraph.check_indices():
        assert assert_traced_equals_eager(read, X, 5, raises=IndexError) is None
    with pytest.raises(IndexError, match="out of bounds"):
        assert_traced_equals_eager(read, X, 5)


# jitted functions


def test_a_jitted_function_keeps_its_static_arguments() -> None:
    @tracegraph.jit(static_argnames="axis", device="cuda")
    def total(x: Any, axis: int) -> Any:
        return x[0] if axis else np.sum(x, axis=axis)

    found = assert_traced_equals_eager(total, X, kwargs={"axis": 1})
    np.testing.assert_array_equal(found, X[0])


def test_donated_arguments_are_left_alone() -> None:
    x = X.copy()
    function = tracegraph.jit(lambda x: x + 1, donate_argnums=0, device="host")
    np.testing.assert_array_equal(assert_traced_equals_eager(function, x), X + 1)
    np.testing.assert_array_equal(x, X)


def test_a_jitted_method_is_one_of_its_instance() -> None:
    @tracegraph.register_dataclass
    @dataclass
    class Scale:
        factor: float

        @tracegraph.jit
        def times(self, x: Any) -> Any:
            return x * self.factor

    assert assert_traced_equals_eager(Scale(3.0).times, 2.0) == 6.0


def test_views_and_arrays_are_arguments() -> None:
    np.testing.assert_array_equal(
        assert_traced_equals_eager(np.negative, X[::-1, ::2]), -X[::-1, ::2]
    )
    x = tracegraph.asarray(X, device="host")
    np.testing.assert_array_equal(assert_traced_equals_eager(lambda x: x + 1, x), X + 1)


# misuse


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"ways": "quick"}, ValueError, r"ways has 'quick'; it is 'all', or some of interpreted, "),
        ({"ways": ["host", "x", 3]}, ValueError, r"ways has 'x', 3; it is 'all'"),
        ({"ways": ()}, ValueError, "ways names no way"),
        ({"ways": {}}, ValueError, "ways names no way"),
        ({"ways": 3}, TypeError, "ways is a name, a sequence of names or a mapping, not int"),
        ({"ways": {"mine": 3}}, TypeError, "the way 'mine' is no function, but 3"),
        ({"ulps": "2"}, TypeError, "ulps is a number, not str"),
        ({"rtol": -1}, ValueError, "rtol must not be negative: got -1"),
        ({"atol": np.nan}, ValueError, "atol must not be negative: got nan"),
        ({"raises": "ValueError"}, TypeError, "raises is an exception class, or a tuple of some"),
    ],
)
def test_misuse_is_said(options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        assert_traced_equals_eager(double, X, **options)


def test_it_takes_a_function() -> None:
    with pytest.raises(TypeError, match="assert_traced_equals_eager takes a function, got 3"):
        assert_traced_equals_eager(3)  # type: ignore[arg-type]
