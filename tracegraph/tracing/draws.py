"""Calls of NumPy's global generator in the source of a function, and of those that it calls."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from tracegraph.tracing.conversions import Place, expression, value
from tracegraph.tracing.numpy_random import twin
from tracegraph.user_source import Kind, kinds


class Draw(NamedTuple):
    """A call that draws numbers: where it is, its text, and ours in its place."""

    file: str
    line: int
    text: str
    twin: str


_DEEPEST = 6
"""How many calls after one another are followed."""


def first_draw(function: Callable[..., Any]) -> Draw | None:
    """The first call of the global generator that a function, or one that it calls, has."""
    return next(_draws(function, 0, set()), None)


def _draws(function: Any, depth: int, seen: set[CodeType]) -> Iterator[Draw]:
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)
        elif inspect.ismethod(function):
            function = function.__func__
        else:
            break
    if not isinstance(function, FunctionType) and not isinstance(function, type):
        function = vars(type(function)).get("__call__")  # an object that is called
    if not isinstance(function, FunctionType) or depth > _DEEPEST:
        return
    names = dict(inspect.getclosurevars(function).nonlocals)
    yield from _of_code(function.__code__, names, function.__globals__, depth, seen)


def _of_code(
    code: CodeType, names: dict[str, Any], globals_: dict[str, Any], depth: int, seen: set[CodeType]
) -> Iterator[Draw]:
    if code in seen or kinds[code.co_filename] is not Kind.USER:
        return
    seen.add(code)
    scope: Any = SimpleNamespace(f_locals=names, f_globals=globals_)
    for instruction in dis.get_instructions(code):
        if not instruction.opname.startswith("CALL"):
            continue
        node = expression(Place(code, instruction.offset, globals_))
        if not isinstance(node, ast.Call):
            continue
        called = value(node.func, scope)
        ours = twin(called)
        if ours is not None:
            line = instruction.positions.lineno if instruction.positions else None
            yield Draw(code.co_filename, line or code.co_firstlineno, ast.unparse(node), ours)
        elif called is not None:
            yield from _draws(called, depth + 1, seen)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant, names, globals_, depth, seen)
