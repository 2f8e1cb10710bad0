"""Tracebacks have the frames of users alone, unless all are asked for."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import host_jit
from tracegraph.tracing.function_table import FUNCTIONS

OWN = Path(__file__).name


def frames(error: BaseException) -> list[tuple[str, str]]:
    """File and function of each frame below `raised`."""
    entries = traceback.extract_tb(error.__traceback__)
    return [(Path(e.filename).name, e.name) for e in entries][1:]


def raised(call: Callable[..., Any], *args: Any) -> BaseException:
    try:
        call(*args)
    except BaseException as error:
        return error
    raise AssertionError("no error")


def branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def looping(x: Any) -> Any:
    return tracegraph.fori_loop(0, 3, lambda i, y: branching(y), x)


class Model:
    @tracegraph.jit
    def step(self, x: Any) -> Any:
        return x.reshape(7)

    def plain(self, x: Any) -> Any:
        return host_jit(branching)(x)


tracegraph.tree.register(Model, lambda m: ((), None, ()), lambda *_: Model())


def written_to(x: Any, value: Any) -> None:
    x[0] = value


def increased(x: Any, value: Any) -> None:
    x += value


WRITES: list[Callable[[Any], Any]] = [
    lambda x: x.sort(),
    lambda x: x.fill(1),
    lambda x: x.put([0], [1]),
    lambda x: setattr(x, "real", 1),
]

ONES = np.ones(3)
ARRAY = tracegraph.asarray(ONES)


@pytest.mark.parametrize(
    ("call", "args", "functions"),
    [
        (host_jit(branching), (ONES,), ["branching"]),
        (host_jit(looping), (ONES,), ["looping", "<lambda>", "branching"]),
        (
            host_jit(lambda x: host_jit(looping)(x)),
            (ONES,),
            ["<lambda>", "looping", "<lambda>", "branching"],
        ),
        (host_jit(branching).lower, (ONES,), ["branching"]),
        (tracegraph.make_program(branching), (ONES,), ["branching"]),
        (host_jit(lambda x: x.sum(axis=5)), (ONES,), ["<lambda>"]),
        (host_jit(lambda x: np.matmul(x, x[:2])), (ONES,), ["<lambda>"]),
        (host_jit(lambda x: x[10]), (ONES,), ["<lambda>"]),
        (host_jit(lambda x: x), ("a string",), []),
        (host_jit(lambda x: x).lower(1.0).compile(), (2,), []),
        (host_jit(lambda x: x), (), []),
        (Model().step, (ONES,), ["step"]),
        (Model().plain, (ONES,), ["plain", "branching"]),
        (tracegraph.cond, (True, 1, 2), []),
        (tracegraph.scan, (lambda c, x: c, 0, ONES), []),
        (lambda x: x + np.ones(2), (ARRAY,), ["<lambda>"]),
        (lambda x: np.ones(2) + x, (ARRAY,), ["<lambda>"]),
        (lambda x: np.add(x, np.ones(2)), (ARRAY,), ["<lambda>"]),
        (lambda x: x[10], (ARRAY,), ["<lambda>"]),
        (lambda x: x.reshape(7), (ARRAY,), ["<lambda>"]),
        (lambda x: tracegraph.numpy.sum(x, axis=5), (ARRAY,), ["<lambda>"]),
        (tracegraph.asarray, ("text",), []),
        (written_to, (ARRAY, 1), ["written_to"]),
        (written_to, (ARRAY + 1, "a"), ["written_to"]),
        (increased, (ARRAY, np.ones(2)), ["increased"]),
        (increased, (ARRAY + 1, 1j), ["increased"]),
        *((lambda x, f=f: f(x), (ARRAY,), ["<lambda>", "<lambda>"]) for f in WRITES),
    ],
)
def test_no_internal_frame(
    call: Callable[..., Any], args: Any, functions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = raised(call, *args)
    assert frames(error) == [(OWN, name) for name in functions]
    monkeypatch.setenv("TRACEGRAPH_TRACEBACK", "full")
    shown = frames(raised(call, *args))
    assert len(shown) > len(functions)
    assert [f for f in shown if f[0] == OWN] == [(OWN, name) for name in functions]


def test_the_users_error_keeps_its_class_cause_context_and_notes() -> None:
    def fails(x: Any) -> Any:
        try:
            branching(x)
        except TypeError as error:
            chained = ValueError("of the user")
            chained.add_note("a note")
            raise chained from error

    error = raised(host_jit(fails), ONES)
    assert type(error) is ValueError
    assert error.__notes__ == ["a note"]
    assert frames(error) == [(OWN, "fails")]
    cause = error.__cause__
    assert isinstance(cause, tracegraph.errors.TracerBoolError)
    assert cause is error.__context__
    assert [e.name for e in traceback.extract_tb(cause.__traceback__)] == ["fails", "branching"]


def test_members_of_groups_are_shown_in_the_same_way() -> None:
    def fails(x: Any) -> Any:
        raise ExceptionGroup("both", [raised(branching, x), ValueError()])

    (inner, _) = raised(host_jit(fails), ONES).exceptions  # type: ignore[attr-defined]
    assert [e.name for e in traceback.extract_tb(inner.__traceback__)] == ["raised", "branching"]


def test_a_debugger_gets_to_the_variables_of_the_users_frames() -> None:
    step = raised(host_jit(branching), ONES).__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    assert step is not None
    assert step.tb_frame.f_locals["x"].shape == (3,)
    caller = step.tb_frame.f_back
    assert caller is not None
    assert caller.f_globals["__name__"].startswith("tracegraph")


def test_a_fault_of_the_package_shows_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> Any:
        return {}[args]

    monkeypatch.setitem(FUNCTIONS, "add", fails)
    shown = frames(raised(host_jit(lambda x: x + 1), ONES))
    assert shown[-1] == (OWN, "fails")  # it is not of the package here
    assert len(shown) == 2

    monkeypatch.delitem(FUNCTIONS, "multiply")
    shown = frames(raised(host_jit(lambda x: x * 1), ONES))
    assert ("operators.py", "method") in shown
    assert ("jitted.py", "__call__") in shown


def test_errors_of_iteration_end_loops_as_before() -> None:
    assert [float(x) for x in ARRAY] == [1.0, 1.0, 1.0]
    with pytest.raises(StopIteration):
        host_jit(lambda x: next(iter(())))(1.0)
