"""`last_call`: what the last call of a function did, found out afterwards."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.threads import collect_garbage
from tracegraph import jit


def handled(f: Any) -> list[tuple[str, str, int]]:
    return [(each.path, each.handling, each.bytes_copied) for each in f.last_call().operands]


def test_there_is_none_before_the_first() -> None:
    f = jit(lambda x: x + 1, device="host")
    assert f.last_call() is None
    f(1.0)
    f.forget()
    assert f.last_call() is None


def test_tracing_finding_and_recognising_are_told_apart() -> None:
    f = jit(lambda x: x + 1, device="host")
    x, y = np.ones(3), np.ones(4)

    def told() -> tuple[bool, bool, bool, str]:
        call = f.last_call()
        assert call is not None
        return call.traced, call.built, call.recognised, call.because

    f(x)
    assert told() == (True, True, False, "")
    f(x)
    assert told() == (False, False, True, "")
    f(y)
    assert told() == (True, True, False, "x: f64[3] -> f64[4]")
    f(x)
    assert told() == (False, False, True, "")
    f(x.astype(">f8"))
    assert told() == (False, False, False, "")


def test_a_program_that_was_evicted_is_built_and_not_traced() -> None:
    f = jit(lambda x: x + 1, device="host")
    f(1.0)
    (cached,) = f._builds.executables.values()
    assert cached.evict()
    f(1.0)
    call = f.last_call()
    assert call is not None
    assert (call.traced, call.built) == (False, True)
    assert ": built again, as it had been evicted" in repr(call)


def test_arguments_say_how_they_are_passed() -> None:
    f = jit(lambda state, dt: state["v"][0].sum() + state["v"][1] * dt, device="host")
    dense, strided = np.ones((8, 4)), np.ones((8, 8))[:, ::2]
    f({"v": [dense, 1.0]}, 2)
    assert handled(f) == [
        ("state['v'][0]", "in place", 0),
        ("state['v'][1]", "by value", 0),
        ("dt", "by value", 0),
    ]
    f({"v": [strided, 1.0]}, 2)
    call = f.last_call()
    assert call is not None
    assert call.bytes_copied == sum(copied for _, _, copied in handled(f))
    f({"v": [dense, 1.0]}, 2)
    again = f.last_call()
    assert again is not None
    assert again.bytes_copied == 0


def test_donated_arguments() -> None:
    f = jit(lambda x: x + 1, device="host", donate_argnums=0)
    x = f(np.zeros(1000))
    assert handled(f) == [("x", "copied", 8000)]
    f(x)
    assert handled(f) == [("x", "overwritten", 0)]


def test_static_arguments_have_no_operand() -> None:
    f = jit(lambda x, n: x * n, device="host", static_argnums=1)
    f(1.0, 2)
    f(1.0, 3)
    call = f.last_call()
    assert call is not None
    assert [each.path for each in call.operands] == ["x"]
    assert call.because == "static n: 2 -> 3"


def test_it_prints_as_a_table() -> None:
    def step(x: Any, dt: Any) -> Any:
        return x * dt

    f = jit(step, device="host", donate_argnums=0)
    f(np.ones(2), 0.5)
    f(np.ones(3), 0.5)
    line = step.__code__.co_firstlineno
    assert str(f.last_call()) == "\n".join(
        [
            "last call of test_it_prints_as_a_table.<locals>.step "
            f"(test_last_call.py:{line}) on host",
            "traced and built: x: f64[2] -> f64[3]",
            "argument  type    how       bytes copied",
            "x         f64[3]  copied    24",
            "dt        ~f64[]  by value  -",
        ]
    )
    assert repr(f.last_call()).endswith("step: traced and built, 24 B copied>")


def test_no_arguments() -> None:
    f = jit(lambda: np.ones(3) + 1, device="host")
    f()
    call = f.last_call()
    assert call is not None
    assert call.operands == ()
    assert "bytes copied" not in str(call)


def test_it_keeps_nothing_alive_and_does_not_change() -> None:
    f = jit(lambda x: x + 1, device="host")
    f(np.ones(3))
    call = f.last_call()
    (cached,) = (weakref.ref(each) for each in f._builds.executables.values())
    f(np.ones(4))
    f.forget()
    collect_garbage()
    assert cached() is None
    assert call is not None
    assert call.operands[0].type == "f64[3]"
    with pytest.raises(dataclasses.FrozenInstanceError):
        call.traced = False  # type: ignore[misc]


def test_methods_and_functions_inside_of_functions() -> None:
    class Model:
        @jit(device="host", static_argnums=0)
        def run(self, x: Any) -> Any:
            return x + 1

    model = Model()
    model.run(1.0)
    call = model.run.last_call()
    assert call is not None
    assert call.traced
    inner = jit(lambda x: x * 2, device="host")
    jit(lambda x: inner(x) + 1, device="host")(1.0)
    assert inner.last_call() is None  # it became a part of the other


def test_a_closed_program_says_nothing_of_its_arguments() -> None:
    f = jit(lambda x: x + 1, device="host")
    f(1.0)
    tracegraph.reset()
    assert f.last_call() is None or f.last_call().operands == ()
