"""Effects: prints, callbacks, checks and progress reports, and the token that keeps their order.

A *token* is a value of type bool[0], without elements or memory. Each effect takes the token of the
effect before and yields the next. Loops carry it and branches return it, like any other value. The
last token is a hidden result of the program. So passes cannot drop, repeat or reorder effects, and
need not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.dtypes import BOOL
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

TOKEN = ArrayType(BOOL, (0,))
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
    """What a check raises: the name of a class in `tracegraph.errors`, and its message."""

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
    """Forbid effects while the condition of a loop is traced: how often it runs is not defined."""
    token = _pure.set(function)
    try:
        yield
    finally:
        _pure.reset(token)


def require_allowed(effect: str) -> None:
    """Check that an effect may be performed here. Messages call it `effect`.

    Raises:
        EffectInConditionError: it is in the condition of a loop.
    """
    function = _pure.get()
    if function is not None:
        raise errors.EffectInConditionError(effect, function)
