"""Keywords of other libraries: an error says what stands in their place here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tracegraph.errors.wording import user_line

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
