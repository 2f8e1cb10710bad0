"""Parameters of functions: their names, and how many arguments they take.

`inspect.signature` takes ten microseconds, longer than planning a small program. So plain functions
are read from their code objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeGuard

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters(NamedTuple):
    """Names of parameters: those taken by position, `*rest`, whether there is `**any`, and all."""

    positional: tuple[str, ...] = ()
    rest: str | None = None
    any_keyword: bool = False
    all: tuple[str, ...] = ()


def parameters_of(fun: Callable[..., Any]) -> Parameters:
    """The parameters; none for functions without a signature, such as some built-in ones."""
    if _is_plain(fun):
        return _of_code(fun.__code__)
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return Parameters()
    variadic = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    return Parameters(
        tuple(p.name for p in parameters if p.kind in _POSITIONAL),
        variadic[0] if variadic else None,
        any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters),
        tuple(p.name for p in parameters),
    )


def _of_code(code: CodeType) -> Parameters:
    """The parameters of a plain function, as `inspect.signature` finds them."""
    names, count = code.co_varnames, code.co_argcount
    last = count + code.co_kwonlyargcount
    rest, any_keyword = bool(code.co_flags & CO_VARARGS), bool(code.co_flags & CO_VARKEYWORDS)
    variadic = names[last : last + rest + any_keyword]
    return Parameters(
        names[:count],
        variadic[0] if rest else None,
        any_keyword,
        (*names[:count], *variadic[:rest], *names[count:last], *variadic[rest:]),
    )


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a plain function takes `count` positional arguments; False if it is not plain.

    >>> takes(lambda x, y=0: x, 1), takes(lambda x: x, 2)
    (True, False)
    """
    if not _is_plain(function):
        return False
    code, optional = function.__code__, len(function.__defaults__ or ())
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return False
    return code.co_argcount - optional <= count <= code.co_argcount


def _is_plain(function: Callable[..., Any]) -> TypeGuard[FunctionType]:
    """Whether the code object says it all: no wrapper and no attribute, such as `__signature__`."""
    return type(function) is FunctionType and not function.__dict__
