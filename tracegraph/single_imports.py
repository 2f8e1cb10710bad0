"""Modules of other packages, each imported without what the packages around it import.

`import scipy.linalg.lapack` runs `scipy.linalg`, which takes 0.1 s, to get at a module that takes
2 ms; and `nvmath` imports a dozen libraries, which takes 0.2 s. Here the packages around a module
are there while it is imported, but are not run; whoever imports them later has them run as ever.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from threading import Lock, RLock
from types import ModuleType
from typing import Any

MOST_SECONDS = 10.0
"""How long a thread that needs a package waits for the import of a module without it.

Both threads might wait for each other: that one for a module that this one is importing.
"""

_importing = RLock()
_leaving = Lock()


@cache
def imported_alone(module: str, packages: Sequence[str]) -> Any:
    """A module, without running these packages around it, outer ones first.

    Raises:
        ImportError: it, or a package, is not installed.

    >>> imported_alone("xml.dom.minicompat", ("xml.dom",)).__name__, "xml.dom" in sys.modules
    ('xml.dom.minicompat', False)
    """
    with _importing:
        bare = []
        try:
            for package in packages:
                spec = None if package in sys.modules else find_spec(package)
                if spec is not None:
                    sys.modules[package] = _BarePackage.of(spec)
                    bare.append(package)
            return import_module(module)
        finally:
            _leave(bare)


def _leave(packages: Sequence[str]) -> None:
    """Let later imports of these packages find the real ones."""
    with _leaving:
        for package in packages:
            if type(sys.modules.get(package)) is _BarePackage:
                del sys.modules[package]


class _BarePackage(ModuleType):
    """A package that was not run. A thread that imports it meanwhile gets this, which finds names
    in the real one.
    """

    @classmethod
    def of(cls, spec: ModuleSpec) -> ModuleType:
        """The package of a specification."""
        package = module_from_spec(spec)
        package.__class__ = cls
        return package

    def __getattr__(self, name: str) -> Any:
        if _importing.acquire(timeout=MOST_SECONDS):
            try:
                if sys.modules.get(self.__name__) is self:  # in the thread that imports the module
                    raise AttributeError(name)
            finally:
                _importing.release()
        else:
            _leave([n for n, m in list(sys.modules.items()) if type(m) is _BarePackage])
        return getattr(import_module(self.__name__), name)
