"""The bindings of NVIDIA's libraries, each imported by itself.

The package `nvmath` imports all that it has: a dozen libraries, and functions for arrays, of which
nothing is used here. That takes 0.2 s, and a binding alone 0.01 s.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

_PACKAGES = ("nvmath", "nvmath.bindings")

_importing = RLock()


@cache
def binding(name: str) -> Any:
    """The module of a library, such as "cublas", without what the packages around it import.

    Raises:
        ImportError: nvmath-python is not installed, or has no such library.
    """
    with _importing:
        bare = []
        try:
            for package in _PACKAGES:
                spec = None if package in sys.modules else find_spec(package)
                if spec is not None:
                    sys.modules[package] = _BarePackage.of(spec)
                    bare.append(package)
            return import_module(f"nvmath.bindings.{name}")
        finally:
            for package in bare:  # whoever imports the package has it run
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
        with _importing:
            if sys.modules.get(self.__name__) is self:  # in the thread that imports a binding
                raise AttributeError(name)
        return getattr(import_module(self.__name__), name)
