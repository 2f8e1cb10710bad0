"""What a function calls its parameters, and how many arguments it takes.

A signature takes ten microseconds to make, which is most of what a small loop's checks take. Of a
plain function, its code tells the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

_OTHERS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def parameter_names(function: Callable[..., Any]) -> Sequence[str]:
    """The names of a function's parameters, in order; none if it does not tell.

    >>> parameter_names(lambda state, *rest: state)
    ('state', 'rest')
    """
    code = _plain_code(function)
    if code is not None:
        return code.co_varnames[: code.co_argcount]
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some callables have no signature
        return ()


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it is plain that a function takes so many arguments by position.

    >>> takes(lambda x, y=0: x, 1), takes(lambda x: x, 2)
    (True, False)
    """
    code = _plain_code(function)
    if code is None:
        return False
    optional = len(function.__defaults__ or ())
    return code.co_argcount - optional <= count <= code.co_argcount


def _plain_code(function: Callable[..., Any]) -> CodeType | None:
    """The code of a function that has ordinary parameters only, and no other signature given."""
    if type(function) is not FunctionType or function.__dict__:
        return None
    code = function.__code__
    return None if code.co_flags & _OTHERS or code.co_kwonlyargcount else code
