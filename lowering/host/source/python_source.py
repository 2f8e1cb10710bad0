"""The text of a Python function while it is written, and the objects that it names.

A plan becomes one function of straight-line NumPy calls. Arrays with a fixed address are its
globals; arguments and results are its locals, so none outlives a call.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tracegraph.generated_functions import define

DEEPEST = 8
"""Most nested blocks of one function; CPython allows twenty loops."""

LONG = 32
"""Least calls in a row that become a list and a loop over it. Python takes 20 µs to compile a line,
and a compiled line saves 15 ns per run."""

_TAKEN = frozenset({"run", "arguments", "check_time", "step"})
"""Names of the function, its parameters and the loop variable over calls."""

_LITERALS = (bool, int, tuple, type(None))


class PythonSource:
    """Lines, indented as blocks are opened, and names of objects."""

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._prologue: list[str] = []
        self._functions: list[str] = []
        self._lines: list[str] = []
        self._calls: list[tuple[str, Callable[[], object]]] = []
        self._depth = 1
        self._variables = self._parts = 0

    def name(self, thing: Any) -> str:
        """The name of a global for an object, which lives as long as the function."""
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

    def value(self, thing: Any) -> str:
        """The text of a constant, or the name of a global for it."""
        return repr(thing) if isinstance(thing, _LITERALS) else self.name(thing)

    def variable(self) -> str:
        """A new local."""
        self._variables += 1
        return f"v{self._variables}"

    def first(self, line: str) -> None:
        """Add a line to those that run before all others."""
        self._prologue.append(line)

    def line(self, text: str) -> None:
        """Add a line here."""
        self._end_calls()
        self._lines.append("    " * self._depth + text)

    def call(self, text: str, function: Callable[..., object], *arguments: Any) -> None:
        """Add a line that calls a function on objects that exist already."""
        self._calls.append((text, partial(function, *arguments)))

    def _end_calls(self) -> None:
        calls, self._calls = self._calls, []
        if len(calls) < LONG:
            self._lines += ["    " * self._depth + text for text, _ in calls]
        else:
            self.line(f"for step in {self.name([call for _, call in calls])}: step()")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Within, lines belong to the block that `head` opens."""
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        self._end_calls()
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    @contextmanager
    def body(self, head: str, assigned: str) -> Iterator[None]:
        """The same for a block that may hold others. Beyond `DEEPEST` it becomes an inner function.

        `assigned` lists the variables that it assigns and that are read outside.
        """
        if self._depth < DEEPEST:
            with self.block(head):
                yield
            return
        self._end_calls()
        self._parts += 1
        name = f"part{self._parts}"
        outside = self._lines, self._depth
        self._lines, self._depth = [], 1
        with self.block(f"def {name}():"):
            if assigned:
                self.line(f"nonlocal {assigned}")
            yield
        self._functions += self._lines
        self._lines, self._depth = outside
        with self.block(head):
            self.line(f"{name}()")

    def text(self, head: Sequence[str], result: str) -> str:
        """The whole function: `head` is its first lines, and `result` what it returns."""
        self._end_calls()
        first, *binding = head
        lines = [*(f"    {line}" for line in (*binding, *self._prologue)), *self._functions]
        return "\n".join([first, *lines, *self._lines, f"    return {result}", ""])

    def function(self, head: Sequence[str], result: str, about: str) -> Callable[..., Any]:
        """The compiled function `run`; `about` is the file name in tracebacks."""
        return define(self.text(head, result), "run", about, self._objects)
