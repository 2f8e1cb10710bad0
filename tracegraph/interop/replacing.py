"""Functions of other libraries, replaced for a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


class Replacements:
    """Names of modules that have other values until `undo`, which takes them back, last first."""

    def __init__(self) -> None:
        self._undoing: list[Callable[[], None]] = []

    def set(self, module: Any, name: str, value: Any) -> None:
        """Give a name of one module another value."""
        before = getattr(module, name)
        setattr(module, name, value)
        self.afterwards(lambda: setattr(module, name, before))

    def everywhere(self, package: str, name: str, before: Any, value: Any) -> None:
        """Put a function in the place of another wherever a module of a package has imported it.

        Modules that are loaded later import it where it is defined. They are found at the end.
        """
        for module in _modules_of(package):
            if vars(module).get(name) is before:
                setattr(module, name, value)

        def undo() -> None:
            for module in _modules_of(package):
                if vars(module).get(name) is value:
                    setattr(module, name, before)

        self.afterwards(undo)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do something at the end, before what was asked for until now is taken back."""
        self._undoing.append(action)

    def undo(self) -> None:
        """Take everything back."""
        while self._undoing:
            self._undoing.pop()()


def _modules_of(package: str) -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            yield module
