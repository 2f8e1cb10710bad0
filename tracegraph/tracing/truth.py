"""The truth of a traced value: what the user's line asks it for, and what to write instead.

Python asks for it on behalf of `if` and `while`, and also of `max(a, b)`, `x in list`, `0 < x < 1`,
`a and b`, which have functions that work on traced values.
"""

from __future__ import annotations

import ast
import builtins
from types import FrameType

from tracegraph.tracing.conversions import (
    Conversion,
    expression_of,
    of_comparison,
    quoted,
    tested,
    value,
)
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.user_source import user_frame

_OF_ALL = {builtins.max: "max", builtins.min: "min", builtins.any: "any", builtins.all: "all"}
_STATIC = "make the argument static with jit(..., static_argnums=...)"
_OF_TWO = {builtins.max: "maximum", builtins.min: "minimum"}


def truth_conversion() -> Conversion | None:
    """The user's expression that asks for the truth of a value, if it has an advice of its own."""
    frame, calls_package = user_frame()
    node = None if frame is None else expression_of(frame)
    if frame is None or calls_package:
        return None
    return _of_expression(node, frame) or _of_statement(frame)


def _of_expression(node: ast.AST | None, frame: FrameType) -> Conversion | None:
    if isinstance(node, ast.Call):
        return _of_call(node, frame)
    if isinstance(node, ast.Compare):
        return of_comparison(node)
    if isinstance(node, ast.BoolOp):
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        word = "and" if isinstance(node.op, ast.And) else "or"
        text = quoted(node, f"`{word}`")
        operands = [ast.unparse(operand) for operand in node.values]
        nested = operands[0]
        for operand in operands[1:]:
            nested = f"numpy.{name}({nested}, {operand})"
        return Conversion(text, f"write {nested}")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = ast.unparse(node.operand)
        return Conversion(quoted(node, "`not`"), f"write numpy.logical_not({operand})")
    return None


def _of_statement(frame: FrameType) -> Conversion | None:
    found = tested(frame)
    if found is None:
        return None
    word, text = found[0], quoted(found[1], "...")
    if word == "while":
        instead = (
            "use tracegraph.while_loop(condition, body, first), both functions of what the loop "
            f"carries; or {_STATIC}"
        )
    elif word == "assert":
        instead = "return the condition beside the results, and assert it outside"
    else:
        instead = (
            f"choose elements by numpy.where({text}, a, b), which computes both, or use "
            f"tracegraph.cond({text}, f, g, *operands), which calls one of two functions; or "
            f"{_STATIC}"
        )
    return Conversion(f"`{word} {text}`", instead)


def _of_call(node: ast.Call, frame: FrameType) -> Conversion | None:
    called, name = value(node.func, frame), ast.unparse(node.func)
    text = quoted(node, f"{name}(...)")
    arguments = [ast.unparse(argument) for argument in node.args]
    if called is builtins.sorted and arguments:
        return Conversion(text, f"write numpy.sort({arguments[0]})")
    if any(called is known for known in _OF_ALL):
        if node.keywords:
            position = "argmax" if called is builtins.max else "argmin"
            return Conversion(
                text, f"write numpy.{_OF_ALL[called]} of an array, or x[numpy.{position}(keys)]"
            )
        if len(arguments) == 1:
            array = _as_array(node.args[0])
            return Conversion(text, f"write numpy.{_OF_ALL[called]}({array})")
        nested = arguments[0] if arguments else ""
        for argument in arguments[1:]:
            nested = f"numpy.{_OF_TWO[called]}({nested}, {argument})"
        return Conversion(text, f"write {nested}")
    own, module = getattr(called, "__name__", ""), getattr(called, "__module__", None) or ""
    if module.partition(".")[0] == "numpy" and own in FUNCTIONS:
        return Conversion(text, f"write tracegraph.numpy.{own}, with the same arguments")
    if isinstance(node.func, ast.Attribute) and arguments:
        owner = ast.unparse(node.func.value)
        equal = f"tracegraph.numpy.asarray({owner}) == {arguments[0]}"
        if node.func.attr == "index":
            return Conversion(text, f"write numpy.argmax({equal})")
        if node.func.attr == "count":
            return Conversion(text, f"write numpy.count_nonzero({equal})")
    return None


def _as_array(node: ast.expr) -> str:
    """An argument as an array: a display of a list is stacked."""
    text = ast.unparse(node)
    return f"numpy.stack({text})" if isinstance(node, (ast.List, ast.Tuple)) else text
