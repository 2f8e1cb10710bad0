"""Misuse of vmap is an error that says what came, what is needed, what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors, vmap

X = np.ones((3, 2))


def both(x: Any, y: Any) -> Any:
    return {"sum": x + y["a"], "one": 1}


def write(x: Any) -> Any:
    x[0] = 1
    return x


def decide(x: Any) -> Any:
    return x if x > 0 else -x


MISUSE: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "no function": (lambda: vmap(3), errors.NotCallableError, ["fun must be a function, not 3"]),
    "axes of one argument": (
        lambda: vmap(both, (0,))(X, {"a": X}),
        errors.VmapAxesError,
        ["in_axes", "a tuple with an entry", "both (test_vmap_misuse.py:", "got 2", "(0,)"],
    ),
    "axes by name": (
        lambda: vmap(both, "x")(X, {"a": X}),  # type: ignore[arg-type]
        errors.VmapAxesError,
        ["in_axes must be an int, None, or a tuple", "'x'"],
    ),
    "axes of another tree": (
        lambda: vmap(both, (0, {"b": 0}))(X, {"a": X}),
        errors.VmapAxesError,
        ["in_axes has {'b': 0} for argument y", "{'a': *}"],
    ),
    "a bool for an axis": (
        lambda: vmap(both, (0, True))(X, {"a": X}),
        errors.VmapAxesError,
        ["in_axes must hold ints and None, not True"],
    ),
    "an axis out of range": (
        lambda: vmap(both, (0, -3))(X, {"a": X}),
        errors.VmapAxesError,
        ["in_axes is -3", "y['a'] has type f64[3,2]", "None for what all lanes share"],
    ),
    "a number has no axis": (
        lambda: vmap(both)(X, {"a": 2.0}),
        errors.VmapAxesError,
        ["in_axes is 0", "y['a'] has type ~f64[]"],
    ),
    "other numbers of lanes": (
        lambda: vmap(both, (0, 1))(X, {"a": X}),
        errors.LaneCountError,
        ["one extent", "x: f64[3,2], which has 3 along axis 0", "y['a']: f64[3,2], which has 2"],
    ),
    "another size": (
        lambda: vmap(write, axis_size=4)(X),
        errors.LaneCountError,
        ["axis_size=4 elements", "x: f64[3,2], which has 3"],
    ),
    "no lanes at all": (
        lambda: vmap(both, None)(X, {"a": X}),
        errors.LaneCountError,
        ["no argument of both", "give axis_size"],
    ),
    "a size below zero": (
        lambda: vmap(write, axis_size=-1),
        errors.VmapAxesError,
        ["axis_size must be an int of at least 0, not -1"],
    ),
    "a size that is no int": (
        lambda: vmap(write, axis_size=True),
        errors.VmapAxesError,
        ["axis_size must be an int of at least 0, not True"],
    ),
    "lanes thrown away": (
        lambda: vmap(both, out_axes={"sum": None, "one": None})(X, {"a": X}),
        errors.OutAxesError,
        ["out_axes is None for result['sum'] of both", "f64[2] in each lane"],
    ),
    "a result axis out of range": (
        lambda: vmap(both, out_axes=2)(X, {"a": X}),
        errors.VmapAxesError,
        ["out_axes is 2, but result['one'] of both", "~i64[] in each lane"],
    ),
    "results of another tree": (
        lambda: vmap(both, out_axes=(0, 0))(X, {"a": X}),
        errors.VmapAxesError,
        ["out_axes has (0, 0) for the result", "{'one': *, 'sum': *}"],
    ),
    "an argument that is no array": (
        lambda: vmap(write)({"a": "text"}),
        errors.LeafTypeError,
        ["x['a']: builtins.str is not an array"],
    ),
    "a result that is no array": (
        lambda: vmap(lambda x: [x, "text"])(X),
        errors.LeafTypeError,
        ["result[1], returned by <lambda>"],
    ),
    "a write to an argument": (
        lambda: vmap(write)(X),
        errors.TracerWriteError,
        ["a lane of argument x", "write to a copy"],
    ),
    "a write to what lanes share": (
        lambda: vmap(lambda i, x: write(x), (0, None))(np.arange(2), X[0]),
        errors.TracerWriteError,
        ["argument x", "write to a copy"],
    ),
    "a decision": (lambda: vmap(decide)(X[0]), errors.TracerBoolError, ["tracegraph.cond"]),
}


@pytest.mark.parametrize("traced", [False, True], ids=["now", "traced"])
@pytest.mark.parametrize("case", MISUSE)
def test_misuse_raises(case: str, traced: bool) -> None:
    call, class_, facts = MISUSE[case]
    with pytest.raises(class_) as caught:
        tracegraph.make_program(lambda x: call())(1.0) if traced else call()
    message = str(caught.value)
    assert type(caught.value) is class_
    missing = [fact for fact in facts if fact not in message]
    assert not missing, message
    assert "\n  at test_vmap_misuse.py:" in message


def test_errors_of_vmap_are_value_errors() -> None:
    for class_ in (errors.VmapAxesError, errors.LaneCountError, errors.OutAxesError):
        assert issubclass(class_, errors.VmapError)
        assert issubclass(class_, ValueError)
