"""Keyword arguments: names that other libraries have, with what stands in their place here; and
values of a wrong type.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from tracegraph.errors.wording import user_line, value_text

__all__ = ["KeywordError", "refuses"]

_F = TypeVar("_F", bound=Callable[..., Any])


class KeywordError(TypeError):
    """A function has no parameter of this name; another library has, and ours is another."""

    def __init__(self, function: str, keyword: str, advice: str) -> None:
        super().__init__(f"{function} has no parameter {keyword}: {advice}{user_line()}")


def refuses(**advice: str) -> Callable[[_F], _F]:
    """A decorator of a function that has no parameters of these names: what to write instead.

    >>> @refuses(init_val="the first value is called init")
    ... def loop(init): ...
    >>> try:
    ...     loop(init_val=0)
    ... except KeywordError as error:
    ...     print(str(error).splitlines()[0])
    loop has no parameter init_val: the first value is called init
    """

    def decorated(function: _F) -> _F:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if kwargs and not advice.keys().isdisjoint(kwargs):
                keyword = next(name for name in kwargs if name in advice)
                made = function.__name__ == "__init__"
                owner = type(args[0]).__name__ if made else function.__qualname__
                raise KeywordError(owner, keyword, advice[keyword])
            return function(*args, **kwargs)

        return cast(_F, checked)

    return decorated


def required_bool(option: str, value: object) -> bool:
    """An option that is True or False.

    Raises:
        TypeError: it is something else; a word such as ``"no"`` would count as true.

    >>> required_bool("trusted", False)
    False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{option} must be True or False, not {value_text(value)}")
    return bool(value)


def required_int(option: str, value: object, what: str) -> int:
    """An option that is an integer, which means `what`; NumPy's integers are such.

    Raises:
        TypeError: it is no integer.

    >>> required_int("max_bytes", 1024, "a number of bytes")
    1024
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise TypeError(f"{option} must be {what}, not {value_text(value)}")


def required_seconds(option: str, value: object) -> float:
    """An option that is a positive number of seconds.

    Raises:
        TypeError: it is no number.
        ValueError: it is not positive.

    >>> required_seconds("initialization_timeout", 30)
    30.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{option} must be a number of seconds, not {value_text(value)}")
    if not value > 0:  # type: ignore[operator]
        raise ValueError(f"{option} must be more than 0 seconds, not {value}")
    return float(value)
