"""debug.nans and debug.checks: which operation first made a NaN or an infinity, where and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracegraph as tg
from tracegraph import debug, errors


def message(error: pytest.ExceptionInfo[errors.NonFiniteError]) -> list[str]:
    return [line.strip() for line in str(error.value).splitlines()]


def nested(state: Any, shifts: Any) -> Any:
    """A scan over shifts, with a loop of three steps inside, of which one may take a log of less
    than nothing.
    """

    def inner(carry: Any, shift: Any) -> Any:
        return tg.fori_loop(0, 3, lambda i, v: np.log(v - shift), carry), carry

    return tg.scan(inner, state["start"], shifts)


def expected(start: float, shifts: Any) -> tuple[int, int] | None:
    """The steps in which the first NaN is made, of the scan and of the loop inside."""
    value = start
    with np.errstate(all="ignore"):
        for outer, shift in enumerate(shifts):
            for step in range(3):
                value, before = np.log(value - shift), value
                if np.isnan(value) and not np.isnan(before):
                    return outer, step
    return None


@settings(max_examples=20)
@given(st.floats(-2, 1e6), st.lists(st.floats(0, 2), min_size=1, max_size=4))
def test_the_line_and_the_steps_are_those_of_the_first_one(start: float, shifts: Any) -> None:
    jitted = tg.jit(nested, device="host")
    steps, given_ = expected(start, shifts), ({"start": start}, np.array(shifts))
    line = nested.__code__.co_firstlineno + 6
    with debug.nans():
        if steps is None:
            jitted(*given_)
            return
        with pytest.raises(errors.NonFiniteError, match="has a NaN") as error:
            jitted(*given_)
    said = message(error)
    assert said[1].startswith("log ")
    assert f" at test_nonfinite.py:{line}, in <lambda> made it: nan" in said[1]
    assert said[2] == f"in step {steps[1]} of the fori_loop at test_nonfinite.py:{line}"
    assert said[3] == f"in step {steps[0]} of the scan at test_nonfinite.py:{line + 2}"


def test_infinities_are_made_too_and_operands_are_shown() -> None:
    inverse = tg.jit(lambda x, scale: scale / (x - 1), device="host")
    x = np.array([3.0, 1.0, 1.0])
    with debug.nans():
        inverse(x, 2.0)
    with debug.nans(infinities=True), pytest.raises(errors.NonFiniteError) as error:
        inverse(x, 2.0)
    assert " has a NaN or an infinity: 2 of 3 elements, the first is [1], inf" in str(error.value)
    assert message(error)[1].startswith("divide scale a at test_nonfinite.py:")
    assert message(error)[2:] == ["scale: f64[] = 2.0", "a: f64[3], from 0.0 to 2.0"]


def test_what_comes_in_is_named_and_let_through() -> None:
    def add(x: Any, y: Any) -> Any:
        return {"sum": x["a"] + y, "root": np.sqrt(y)}

    jitted = tg.jit(add, device="host")
    with debug.nans(), pytest.raises(errors.NonFiniteError) as error:
        jitted({"a": np.array([np.nan, 1.0])}, 4.0)
    assert message(error)[0].startswith("result['sum'] of ")
    assert message(error)[1].endswith("it is in x['a']")
    with debug.nans(), pytest.raises(errors.NonFiniteError, match="sqrt y at test_nonfinite"):
        jitted({"a": np.array([np.nan, 1.0])}, -4.0)


def test_donated_arguments_are_kept_and_nothing_is_built_again() -> None:
    jitted = tg.jit(lambda x: np.sqrt(x) - 1, device="host", donate_argnums=0)
    jitted(np.ones(3))
    with debug.nans():
        jitted(np.ones(3))
        with pytest.raises(errors.NonFiniteError, match=r"sqrt x at .* the first is \[1\], nan"):
            jitted(np.array([1.0, -1.0, 1.0]))
    assert jitted.stats()["builds"] == 1
    assert np.isnan(jitted(np.array([-1.0, 1.0, 1.0]))[0])


def test_prints_are_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(x: Any) -> Any:
        debug.print("x {}", x)
        return np.log(x)

    with debug.nans(), pytest.raises(errors.NonFiniteError, match="log x at"):
        tg.jit(loud, device="host")(-1.0)
    assert capsys.readouterr().out == "x -1.0\n"


def test_checks_are_all_of_them() -> None:
    jitted = tg.jit(lambda x, k: 1 / x[k], device="host")
    x = np.arange(3.0)
    assert jitted(x, 7) == 0.5
    with debug.checks():
        assert jitted(x, 2) == 0.5
        with pytest.raises(errors.IndexRangeError):
            jitted(x, 7)
        with pytest.raises(errors.NonFiniteError, match=r"divide 1\.0"):
            jitted(x, 0)
    assert jitted(x, 7) == 0.5
