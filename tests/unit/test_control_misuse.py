"""Misuse of control flow is an error that says what came, what is needed, what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from traced import trace

from tracegraph import control, errors

X = np.ones(3)


def step(state: Any) -> Any:
    return {"v": [state["v"][0], state["v"][1].astype(np.float32)], "n": state["n"] * np.ones(2)}


def small(c: Any) -> Any:
    return np.sum(c) < 3


def vector(c: Any) -> Any:
    return c < 3


CARRY = {"v": [X, X], "n": np.int64(0)}

# Each case: the call, the error, and the facts that its message must carry.
MISUSE: dict[str, tuple[Callable[[], Any], type[Exception], list[str]]] = {
    "array predicate": (
        lambda: control.cond(X > 0, small, small, X),
        errors.PredicateError,
        ["cond", "pred", "scalar", "bool[3]", "numpy.any"],
    ),
    "no predicate": (
        lambda: control.cond(None, small, small, X),
        errors.PredicateError,
        ["cond", "pred", "None"],
    ),
    "function as predicate": (
        lambda: control.cond(small, small, small, X),
        errors.PredicateError,
        ["pred", "the function small (test_control_misuse.py:"],
    ),
    "text as predicate": (
        lambda: control.cond("yes", small, small, X),
        errors.PredicateError,
        ["pred", "builtins.str"],
    ),
    "value as branch": (
        lambda: control.cond(True, small, 3, X),
        errors.NotCallableError,
        ["cond", "false_fun", "builtins.int", "lambda"],
    ),
    "bool index": (
        lambda: control.switch(np.bool_(True), [small, small], X),
        errors.IntegerError,
        ["switch", "index", "bool[]", "cond"],
    ),
    "float index": (
        lambda: control.switch(1.5, [small, small], X),
        errors.IntegerError,
        ["index", "~f64[]", "astype"],
    ),
    "array index": (
        lambda: control.switch(np.arange(2), [small, small], X),
        errors.IntegerError,
        ["index", "i64[2]"],
    ),
    "no branches": (
        lambda: control.switch(0, [], X),
        errors.NoBranchesError,
        ["branches", "at least one", "empty"],
    ),
    "branches are None": (
        lambda: control.switch(0, None, X),  # type: ignore[arg-type]
        errors.NoBranchesError,
        ["branches", "None"],
    ),
    "branch is not a function": (
        lambda: control.switch(0, [small, None], X),  # type: ignore[list-item]
        errors.NotCallableError,
        ["branches[1]", "None"],
    ),
    "text as operand": (
        lambda: control.cond(True, small, small, {"k": ["text"]}),
        errors.LeafTypeError,
        ["cond", "operands[0]['k'][0]", "str", "capture"],
    ),
    "vector condition": (
        lambda: control.while_loop(vector, lambda c: c, X),
        errors.ConditionError,
        ["while_loop", "cond_fun vector (test_control_misuse.py:", "bool[3]", "numpy.all"],
    ),
    "integer condition": (
        lambda: control.while_loop(lambda c: 1, lambda c: c, X),
        errors.ConditionError,
        ["~i64[]", "boolean scalar"],
    ),
    "condition without value": (
        lambda: control.while_loop(lambda c: None, lambda c: c, X),
        errors.ConditionError,
        ["None", "boolean scalar"],
    ),
    "types of the carry": (
        lambda: control.while_loop(lambda s: np.sum(s["v"][0]) > 0, step, CARRY),
        errors.LeafMismatchError,
        [
            "while_loop",
            "step (test_control_misuse.py:",
            "state['v'][1]: given f64[3], returned f32[3]",
            ".astype(numpy.float64)",
            "state['n']: given i64[], returned f64[2]",
            "broadcast_to",
        ],
    ),
    "structure of the carry": (
        lambda: control.fori_loop(0, 3, lambda i, state: {"w": state["v"]}, {"v": X}),
        errors.StructureError,
        ["fori_loop", "only in given: state['v']", "only in returned: state['w']"],
    ),
    "tuple for list": (
        lambda: control.while_loop(lambda c: np.sum(c[0]) > 0, lambda c: (c[0],), [X]),
        errors.StructureError,
        ["[*]", "(*,)"],
    ),
    "float bound": (
        lambda: control.fori_loop(0, 3.0, lambda i, c: c, X),
        errors.IntegerError,
        ["fori_loop", "upper", "~f64[]"],
    ),
    "bounds of two types": (
        lambda: control.fori_loop(np.int32(0), np.int64(3), lambda i, c: c, X),
        errors.LeafMismatchError,
        ["fori_loop", "lower i32[]", "upper i64[]", "astype"],
    ),
    "no pair": (
        lambda: control.scan(small, X, X, 3),
        TypeError,
        ["small"],
    ),
    "one value from scan's body": (
        lambda: control.scan(lambda c, x: c, X, X),
        errors.ScanBodyError,
        ["scan", "<lambda> (test_control_misuse.py:", "pair (carry, y)", "numpy.ndarray|Tracer"],
    ),
    "extents that differ": (
        lambda: control.scan(lambda c, x: (c, x), X, (X, np.ones((2, 3)))),
        errors.ScanLengthError,
        ["xs[0]: f64[3]", "xs[1]: f64[2,3]", "equal"],
    ),
    "wrong length": (
        lambda: control.scan(lambda c, x: (c, x), X, X, length=4),
        errors.ScanLengthError,
        ["length=4", "f64[3]"],
    ),
    "no length": (
        lambda: control.scan(lambda c, x: (c, x), X),
        errors.ScanLengthError,
        ["length"],
    ),
    "scalar xs": (
        lambda: control.scan(lambda c, x: (c, x), X, {"a": 1.0}),
        errors.ScanLengthError,
        ["xs['a']", "leading axis"],
    ),
    "negative length": (
        lambda: control.scan(lambda c, x: (c, x), X, length=-1),
        errors.ScanLengthError,
        ["negative", "-1"],
    ),
    "negative unroll": (
        lambda: control.scan(lambda c, x: (c, x), X, X, unroll=-1),
        ValueError,
        ["unroll", "-1"],
    ),
    "map over a value": (
        lambda: control.map(3, X),  # type: ignore[arg-type]
        errors.NotCallableError,
        ["map", "f must be a function"],
    ),
}

TRACED_ONLY: dict[str, tuple[Callable[[Any], Any], type[Exception], list[str]]] = {
    "types of branches": (
        lambda n: control.cond(n > 0, lambda: {"a": X, "b": 1}, lambda: {"a": X[:2], "b": X}),
        errors.LeafMismatchError,
        [
            "cond",
            "true_fun <lambda> (test_control_misuse.py:",
            "false_fun <lambda> (test_control_misuse.py:",
            "result['a']: true_fun f64[3], false_fun f64[2]",
            "result['b']: true_fun ~i64[], false_fun f64[3]",
        ],
    ),
    "strong types of branches": (
        lambda n: control.switch(n, [lambda: n, lambda: 1, lambda: np.float32(1)]),
        errors.LeafMismatchError,
        [
            "result: branches[0] i64[], branches[1] ~i64[], branches[2] f32[]",
            ".astype(numpy.int64)",
        ],
    ),
    "structures of branches": (
        lambda n: control.cond(n > 0, lambda: (X, X), lambda: X),
        errors.StructureError,
        ["cond", "true_fun <lambda>", "(*, *)", "only in true_fun", "result[0], result[1]"],
    ),
    "nothing returned": (
        lambda n: control.cond(n > 0, lambda: None, lambda: X),
        errors.StructureError,
        ["None", "only in false_fun"],
    ),
    "text returned": (
        lambda n: control.cond(n > 0, lambda: {"a": "text"}, lambda: {"a": "text"}),
        errors.LeafTypeError,
        ["result['a']", "str"],
    ),
    "traced length": (
        lambda n: control.scan(lambda c, x: (c, x), X, length=n),
        errors.StaticLengthError,
        ["scan", "length", "i64[]", "while_loop"],
    ),
    "traced unroll": (
        lambda n: control.scan(lambda c, x: (c, x), X, X, unroll=n),
        errors.StaticLengthError,
        ["unroll", "i64[]"],
    ),
}


def _require(error: pytest.ExceptionInfo[Exception], facts: list[str]) -> None:
    for fact in facts:
        assert any(choice in str(error.value) for choice in fact.split("|")), (fact, error.value)


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_an_error_that_says_what_to_change(case: str) -> None:
    call, class_, facts = MISUSE[case]
    with pytest.raises(class_) as error:
        call()
    _require(error, facts)
    with pytest.raises(class_) as error:
        trace(lambda x: (x, call()), X)
    _require(error, facts)


@pytest.mark.parametrize("case", TRACED_ONLY)
def test_misuse_that_only_tracing_finds(case: str) -> None:
    call, class_, facts = TRACED_ONLY[case]
    with pytest.raises(class_) as error:
        trace(call, np.int64(1))
    _require(error, facts)


def test_every_mismatch_is_an_instance_of_one_class() -> None:
    for class_ in {class_ for _, class_, _ in (*MISUSE.values(), *TRACED_ONLY.values())}:
        assert issubclass(class_, (TypeError, ValueError))
