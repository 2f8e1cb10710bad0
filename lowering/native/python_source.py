"""The text of a Python function while it is written, and the objects that it names."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import Any

from tracegraph.generated.functions import define

_TAKEN = frozenset({"run", "arguments", "check_time"})
"""Names of the function and its parameters."""


class PythonSource:
    """Names of the objects that a function refers to; they live as long as it does."""

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}
        self._names: dict[int, str] = {}

    def name(self, thing: Any) -> str:
        """The name of a global for an object."""
        unique = self._names.get(id(thing))
        if unique is None:
            own_name = getattr(thing, "__name__", "")
            plain = own_name.isidentifier() and not keyword.iskeyword(own_name)
            unique = own_name if plain else f"k{len(self._objects)}"
            if unique in self._objects or unique in _TAKEN:
                unique = f"{unique}_{len(self._objects)}"
            self._objects[unique] = thing
            self._names[id(thing)] = unique
        return unique

    def function(self, lines: Sequence[str], result: str, about: str) -> Callable[..., Any]:
        """The compiled function `run`; the first of its lines is the head.

        `result` is what it returns, `about` the file name in tracebacks.
        """
        head, *body = lines
        text = "\n".join([head, *(f"    {line}" for line in body), f"    return {result}", ""])
        return define(text, "run", about, self._objects)
