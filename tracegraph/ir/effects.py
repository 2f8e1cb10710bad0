"""Effects: what a program does besides computing its results, and the token that keeps their order.

A *token* is a value of type bool[0]: it has no elements, hence no memory. Each effect takes the
token left by the one before and yields the next; loops carry it and branches return it, like any
other value. The last token is a hidden result of the program. So no pass can drop, repeat or
reorder an effect, and none has to know what an effect is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

TOKEN = ArrayType(np.dtype(np.bool_), (0,))
"""The type of tokens."""


@dataclass(frozen=True, slots=True)
class PrintFormat:
    """The template of a print, in the language of `str.format`.

    The arguments are `positional` arrays, then one array for each of `names`.
    """

    template: str
    positional: int
    names: tuple[str, ...]
    source: Source | None

    def render(self, arrays: tuple[np.ndarray[Any, Any], ...]) -> str:
        """The text for these arguments; scalars are formatted as Python numbers."""
        values = [a.item() if a.ndim == 0 else a for a in arrays]
        named = dict(zip(self.names, values[self.positional :], strict=True))
        return self.template.format(*values[: self.positional], **named)

    def __str__(self) -> str:
        return repr(self.template)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a check raises: a name of an error class in `tracegraph.errors`, its arguments."""

    error: str
    message: str
    source: Source | None

    def exception(self) -> Exception:
        """The error to raise."""
        kind: type[Exception] = getattr(errors, self.error)
        return kind(self.message)

    def __str__(self) -> str:
        return self.error


_pure: ContextVar[Callable[..., Any] | None] = ContextVar("tracegraph_pure", default=None)


@contextmanager
def forbidden_in(function: Callable[..., Any]) -> Iterator[None]:
    """While the condition of a loop runs, which may run more often or less than it is written."""
    token = _pure.set(function)
    try:
        yield
    finally:
        _pure.reset(token)


def require_allowed(effect: str) -> None:
    """Check that an effect, which messages call `effect`, may be performed here.

    Raises:
        EffectInConditionError: it is in the condition of a loop.
    """
    function = _pure.get()
    if function is not None:
        raise errors.EffectInConditionError(effect, function)
