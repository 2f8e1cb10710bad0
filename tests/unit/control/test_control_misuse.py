"""Misuse of control flow is an error that says what came, what is needed, what to change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import trace
from tracegraph import control, debug, errors, register_dataclass
from tracegraph.random import key, normal

X = np.ones(3)


def step(state: Any) -> Any:
    return {"v": [state["v"][0], state["v"][1].astype(np.float32)], "n": state["n"] * np.ones(2)}


def small(c: Any) -> Any:
    return np.sum(c) < 9


def vector(c: Any) -> Any:
    return c < 3


def printing(c: Any) -> Any:
    debug.print("{}", c)
    return np.sum(c) < 3


def bounded(c: Any) -> Any:
    return control.while_loop(small, lambda c: c + 1, c, max_steps=9)[0] < 3


def shown(c: Any) -> Any:
    return control.fori_loop(0, 3, lambda i, c: c, c, progress=True)[0] < 3


def keep(state: Any) -> Any:
    return state


@register_dataclass
@dataclass(frozen=True)
class Body:
    position: Any
    mass: Any


CARRY = {"v": [X, X], "n": np.int64(0)}
HERE = "test_control_misuse.py:"

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
        ["cond", "pred", "None", "pass a comparison"],
    ),
    "function as predicate": (
        lambda: control.cond(small, small, small, X),
        errors.PredicateError,
        ["pred", "the function small (test_control_misuse.py:", "call it"],
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
        ["index", "~f64[]", "int(x)", "astype"],
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
    "parameters of scan's body": (
        lambda: control.scan(small, X, X),
        errors.ParametersError,
        ["scan", f"f small ({HERE}", "takes (c)", "called with (carry, x)"],
    ),
    "parameters of a counted loop's body": (
        lambda: control.fori_loop(0, 3, keep, X),
        errors.ParametersError,
        ["fori_loop", f"body_fun keep ({HERE}", "called with (i, carry)"],
    ),
    "parameters of a condition": (
        lambda: control.while_loop(lambda a, b: a < b, lambda a, b: (a, b), (0, 3)),
        errors.ParametersError,
        ["while_loop", f"cond_fun <lambda> ({HERE}", "takes (a, b)", "called with (carry)"],
    ),
    "parameters of a branch": (
        lambda: control.cond(True, lambda: X, lambda x: x, X),
        errors.ParametersError,
        ["cond", f"true_fun <lambda> ({HERE}", "takes ()", "called with (operands[0])"],
    ),
    "parameters of one of several branches": (
        lambda: control.switch(0, [lambda x, y: x, lambda x, *, y: x], X, X),
        errors.ParametersError,
        ["switch", "branches[1] <lambda>", "takes (x, *, y)", "(operands[0], operands[1])"],
    ),
    "parameters of map's function": (
        lambda: control.map(lambda: 1, X),
        errors.ParametersError,
        ["map", "f <lambda>", "takes ()", "called with (x)"],
    ),
    "one value from scan's body": (
        lambda: control.scan(lambda c, x: c, X, X),
        errors.ScanBodyError,
        [
            "scan",
            "<lambda> (test_control_misuse.py:",
            "pair (carry, y)",
            "an array of type f64[3]|a traced value of type f64[3]",
        ],
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
    "one element of a carry more": (
        lambda: control.fori_loop(0, 3, lambda i, c: (*c, X), (X, X)),
        errors.StructureError,
        ["fori_loop", f"<lambda> ({HERE}", "only in returned: c[2]", "same structure"],
    ),
    "no carry returned": (
        lambda: control.while_loop(small, lambda state: None, X),
        errors.StructureError,
        ["while_loop", "returned: None", "only in given: state"],
    ),
    "types of a dataclass": (
        lambda: control.fori_loop(
            0, 3, lambda i, body: Body(body.position[:1], body.mass + 1j), Body(X, X)
        ),
        errors.LeafMismatchError,
        [
            "body.position: given f64[3], returned f64[1]; make the shapes equal",
            "body.mass: given f64[3], returned c128[3]; add at ",
            "met f64[3] and the number 1j; start with complex128",
            f"<lambda> ({HERE}",
        ],
    ),
    "types of scan's carry": (
        lambda: control.scan(lambda total, x: (total + np.ones(2), x), np.float32(0), X),
        errors.LeafMismatchError,
        ["scan", f"<lambda> ({HERE}", "total: given f32[], returned f64[2]"],
    ),
    "types of an unrolled scan's carry": (
        lambda: control.scan(lambda total, x: (total[:1], x), X, X, unroll=3),
        errors.LeafMismatchError,
        ["scan", f"<lambda> ({HERE}", "total: given f64[3], returned f64[1]"],
    ),
    "structure of an unrolled scan's carry": (
        lambda: control.scan(lambda total, x: ((total, x), x), X, X, unroll=True),
        errors.StructureError,
        ["scan", f"<lambda> ({HERE}", "only in returned: total[0]"],
    ),
    "text from scan's body": (
        lambda: control.scan(lambda c, x: (c, {"t": "text"}), X, X),
        errors.LeafTypeError,
        ["scan", "y['t']", "str", f"<lambda> ({HERE}"],
    ),
    "text from map's body": (
        lambda: control.map(lambda x: ["text"], X),
        errors.LeafTypeError,
        ["map", "result[0]", "str", f"<lambda> ({HERE}"],
    ),
    "text from a loop's body": (
        lambda: control.while_loop(small, lambda state: "text", X),
        errors.LeafTypeError,
        ["while_loop", "state", "str", f"<lambda> ({HERE}"],
    ),
    "text in the carry": (
        lambda: control.while_loop(lambda s: s["n"] < 3, keep, {"n": 0, "name": ["text"]}),
        errors.LeafTypeError,
        ["while_loop", "state['name'][0]", "str", "capture"],
    ),
    "text in xs": (
        lambda: control.scan(lambda c, x: (c, x), X, {"k": "text"}),
        errors.LeafTypeError,
        ["scan", "xs['k']", "str"],
    ),
    "number as condition": (
        lambda: control.while_loop(3, keep, X),  # type: ignore[arg-type]
        errors.NotCallableError,
        ["while_loop", "cond_fun must be a function", "3"],
    ),
    "no body": (
        lambda: control.while_loop(small, None, X),  # type: ignore[arg-type]
        errors.NotCallableError,
        ["while_loop", "body_fun", "None"],
    ),
    "no body of a counted loop": (
        lambda: control.fori_loop(0, 3, X, X),  # type: ignore[arg-type]
        errors.NotCallableError,
        ["fori_loop", "body_fun", "an array of type f64[3]"],
    ),
    "no body of a scan": (
        lambda: control.scan(None, X, X),  # type: ignore[arg-type]
        errors.NotCallableError,
        ["scan", "f must be a function", "None"],
    ),
    "float condition": (
        lambda: control.while_loop(lambda c: np.sum(c), keep, X),
        errors.ConditionError,
        ["f64[]", "boolean scalar", "comparison"],
    ),
    "condition that is a pair": (
        lambda: control.while_loop(lambda c: (True, c), keep, X),
        errors.ConditionError,
        ["builtins.tuple", "boolean scalar"],
    ),
    "None as index": (
        lambda: control.switch(None, [small, small], X),
        errors.IntegerError,
        ["switch", "index", "None"],
    ),
    "function as branches": (
        lambda: control.switch(0, small, X),  # type: ignore[arg-type]
        errors.NoBranchesError,
        ["branches", f"the function small ({HERE}", "list or tuple"],
    ),
    "one branch that is not a function": (
        lambda: control.switch(0, [X], X),  # type: ignore[list-item]
        errors.NotCallableError,
        ["branches[0]", "an array of type f64[3]"],
    ),
    "array as bound": (
        lambda: control.fori_loop(np.arange(2), 3, lambda i, c: c, X),
        errors.IntegerError,
        ["fori_loop", "lower", "i64[2]", "index one element"],
    ),
    "bool as bound": (
        lambda: control.fori_loop(False, 3, lambda i, c: c, X),
        errors.IntegerError,
        ["fori_loop", "lower", "bool[]", "astype"],
    ),
    "no bound": (
        lambda: control.fori_loop(0, None, lambda i, c: c, X),
        errors.IntegerError,
        ["fori_loop", "upper", "None"],
    ),
    "float length": (
        lambda: control.scan(lambda c, x: (c, x), X, length=3.0),  # type: ignore[arg-type]
        errors.IntegerError,
        ["scan", "length", "~f64[]"],
    ),
    "float unroll": (
        lambda: control.scan(lambda c, x: (c, x), X, X, unroll=1.5),  # type: ignore[arg-type]
        errors.IntegerError,
        ["scan", "unroll", "~f64[]"],
    ),
    "map over nothing": (
        lambda: control.map(small, ()),
        errors.ScanLengthError,
        ["map", "xs has no arrays"],
    ),
    "map over extents that differ": (
        lambda: control.map(small, (X, X[:2])),
        errors.ScanLengthError,
        ["map", "xs[0]: f64[3]", "xs[1]: f64[2]"],
    ),
    "negative limit of steps": (
        lambda: control.while_loop(small, keep, X, max_steps=-1),
        errors.StepLimitOptionError,
        ["while_loop", "max_steps", "at least 0", "-1"],
    ),
    "float limit of steps": (
        lambda: control.while_loop(small, keep, X, max_steps=1e6),  # type: ignore[arg-type]
        errors.StepLimitOptionError,
        ["while_loop", "max_steps", "1000000.0"],
    ),
    "bool limit of steps": (
        lambda: control.while_loop(small, keep, X, max_steps=True),
        errors.StepLimitOptionError,
        ["max_steps", "True"],
    ),
    "unknown reaction to the limit": (
        lambda: control.while_loop(small, keep, X, max_steps=3, on_max_steps="warn"),  # type: ignore[arg-type]
        errors.StepLimitOptionError,
        ["on_max_steps", "'raise' or 'stop'", "'warn'"],
    ),
    "number as progress": (
        lambda: control.map(keep, X, progress=3),  # type: ignore[arg-type]
        errors.ProgressError,
        ["map", "progress", "label", "(step, total)", "3"],
    ),
    "print in a condition": (
        lambda: control.while_loop(printing, keep, X),
        errors.EffectInConditionError,
        ["debug.print", f"cond_fun printing ({HERE}", "body_fun"],
    ),
    "bounded loop in a condition": (
        lambda: control.while_loop(bounded, keep, X),
        errors.EffectInConditionError,
        ["max_steps", f"cond_fun bounded ({HERE}", "body_fun"],
    ),
    "progress in a condition": (
        lambda: control.while_loop(shown, keep, X),
        errors.EffectInConditionError,
        ["fori_loop(..., progress=...)", f"cond_fun shown ({HERE}", "body_fun"],
    ),
    "print of a tree": (
        lambda: debug.print("state {s}", s={"a": X}),
        errors.PrintArgumentError,
        ["debug.print('state {s}', ...)", "s: builtins.dict", "one by one", HERE],
    ),
    "print of text": (
        lambda: debug.print("{}: {}", "loss", X),
        errors.PrintArgumentError,
        ["argument 0", "str", "into the template"],
    ),
    "print without template": (
        lambda: debug.print(X),  # type: ignore[arg-type]
        TypeError,
        ["template must be a string", "an array of type f64[3]", 'debug.print("x = {}", x)'],
    ),
    "field without argument": (
        lambda: debug.print("x = {}, y = {}", X),
        errors.PrintFormatError,
        ["debug.print('x = {}, y = {}', ...)", "no argument 1", "f64[3]", "str.format", HERE],
    ),
    "name without argument": (
        lambda: debug.print("x = {x}, y = {y}", x=X),
        errors.PrintFormatError,
        ["no argument named 'y'", "x=f64[3]", HERE],
    ),
    "argument without field": (
        lambda: debug.print("x = {}", X, np.float32(1), y=X, z=X),
        errors.PrintFormatError,
        ["does not use argument 1, y, z", "f64[3], f32[], y=f64[3], z=f64[3]"],
    ),
    "format of a number for an array": (
        lambda: debug.print("x = {:.3f}", X),
        errors.PrintFormatError,
        ["unsupported format string", "f64[3]"],
    ),
    "single brace": (
        lambda: debug.print("set {x", X),
        errors.PrintFormatError,
        ["expected '}'", "doubled"],
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
            "~ marks a Python number",
        ],
    ),
    "strong types of branches": (
        lambda n: control.switch(n, [lambda: n, lambda: 1, lambda: np.float32(1)]),
        errors.LeafMismatchError,
        [
            "result: branches[0] i64[], branches[1] ~i64[], branches[2] f32[]",
            ".astype(numpy.float64)",
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
    "structures of three branches": (
        lambda n: control.switch(n, [lambda: X, lambda: (X, {"k": X}), lambda: [X]]),
        errors.StructureError,
        [
            f"branches[0] <lambda> ({HERE}",
            "(*, {'k': *})",
            "[*]",
            "result[0], result[1]['k']",
            "result[0]",
        ],
    ),
    "template formatted while tracing": (
        lambda n: debug.print(f"n = {n}"),
        errors.PrintFormatError,
        ["Tracer<i64[]>", "while tracing", "arguments", HERE],
    ),
    "traced limit of steps": (
        lambda n: control.while_loop(small, keep, X, max_steps=n),
        errors.StaticLengthError,
        ["while_loop", "max_steps", "i64[]", "argument 0", "carry a count"],
    ),
    "all mismatches of all branches": (
        lambda n: control.switch(
            n,
            [
                lambda: {"a": X, "b": np.int8(1), "c": X},
                lambda: {"a": X, "b": np.int16(1), "c": X},
                lambda: {"a": X, "b": np.int8(1), "c": X[:, None]},
            ],
        ),
        errors.LeafMismatchError,
        [
            f"branches[1] <lambda> ({HERE}",
            "result['b']: branches[0] i8[], branches[1] i16[], branches[2] i8[]",
            "result['c']: branches[0] f64[3], branches[1] f64[3], branches[2] f64[3,1]",
        ],
    ),
    "bounds of two types, one traced": (
        lambda n: control.fori_loop(np.int8(0), n, lambda i, c: c, X),
        errors.LeafMismatchError,
        ["fori_loop", "lower i8[], upper i64[]", "astype"],
    ),
    "traced value as length of a Python loop": (
        lambda n: [control.cond(True, keep, keep, X) for _ in range(n)],
        errors.TracerIndexError,
        ["range", "argument 0", "fori_loop", HERE],
    ),
    "traced value as Python condition": (
        lambda n: control.while_loop(lambda c: c > 0 and c < 9, keep, n),
        errors.TracerBoolError,
        ["c > 0 and c < 9 needs", "bool[]", "numpy.logical_and(c > 0, c < 9)", HERE],
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


@tracegraph.register_dataclass
@dataclasses.dataclass
class Counted:
    x: Any
    steps: int = dataclasses.field(default=0, metadata={"static": True})
    name: str = dataclasses.field(default="a", metadata={"static": True})


@pytest.mark.parametrize("run", [lambda f: f(), lambda f: tracegraph.jit(f, device="host")()])
def test_static_fields_that_change_are_named(run: Any) -> None:
    def f() -> Any:
        return control.fori_loop(
            0, 3, lambda i, s: {"a": Counted(s["a"].x, s["a"].steps + 1)}, {"a": Counted(1.0)}
        )

    with pytest.raises(errors.StructureError) as caught:
        run(f)
    message = str(caught.value)
    assert "static field s['a'].steps is 0 in given and 1 in returned" in message
    assert "declare it without static" in message
    assert "given: {'a': Counted(x=*, steps=0, name='a')}" in message
    assert "CustomTreeNode" not in message
    assert ".name" not in message


def widened_by_a_number(i: Any, c: Any) -> Any:
    rate = 0.1 / np.sqrt(i + 1)
    scaled = c * 2
    return scaled - rate


FLOATS = np.ones(4, np.float32)
WIDENED: dict[str, tuple[Any, list[str]]] = {
    "of an index": (
        lambda: control.fori_loop(0, 3, widened_by_a_number, FLOATS),
        ["subtract at test_control_misuse.py:", "met f32[4] and f64[], computed at"],
    ),
    "of a scanned arange": (
        lambda: control.scan(lambda c, i: (c * 0.9 ** (i + 1), None), FLOATS, np.arange(4)),
        ["multiply at test_control_misuse.py:", "met f32[4] and f64[], computed at"],
    ),
    "by random numbers": (
        lambda: control.fori_loop(0, 3, lambda i, c: c + normal(key(i), (4,)), FLOATS),
        ["add at test_control_misuse.py:", "met f32[4] and f64[4], computed at"],
    ),
    "by a NumPy number": (
        lambda: control.while_loop(lambda c: c[0] < 9, lambda c: c + np.float64(1), FLOATS),
        ["add at test_control_misuse.py:", "met f32[4] and the f64[] number 1.0"],
    ),
    "by an array from outside": (
        lambda: control.fori_loop(0, 3, lambda i, c: {"v": c["v"] + X}, {"v": X.astype("f4")}),
        ["c['v']: given f32[3], returned f64[3]; add at", "a value of type f64[3] from outside"],
    ),
}


@pytest.mark.parametrize("name", WIDENED)
@pytest.mark.parametrize("run", [lambda f: f(), lambda f: tracegraph.jit(f, device="host")()])
def test_the_operation_that_widens_a_carry_is_named(run: Any, name: str) -> None:
    function, texts = WIDENED[name]
    with pytest.raises(errors.LeafMismatchError) as caught:
        run(function)
    for text in (*texts, "cast one, for example with .astype(numpy.float32)"):
        assert text in str(caught.value)
