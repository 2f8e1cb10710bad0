"""Late binding: functions that arrays call and that are built on arrays, by name.

Operators and methods of arrays call the functions of `tracegraph.numpy`; eager ops on a device call
`jit`. So the tables are empty here. `staging/jit.py` enters `jit`, and the first look for a name
that is missing imports the modules that enter the others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class _Functions(dict[str, Callable[..., Any]]):
    """Functions by name, entered by a module that is imported when one is missing."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __missing__(self, name: str) -> Callable[..., Any]:
        import_module(self._module)
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        import_module(self._module)
        return super().__contains__(name)


SPECIAL = _Functions("tracegraph.special")
"""The functions of `tracegraph.special`, by name."""

ARRAY_API = _Functions("tracegraph.array_api")
"""``namespace``: the module `tracegraph.array_api`, for a version of the standard or none."""

FUNCTIONS = _Functions("tracegraph.numpy.dispatching.methods")
"""Besides NumPy's names: ``getitem``, ``setitem`` and ``updated`` (indexing), and
``cast_to``, ``setitem_of_selected``, ``apply_to_selected`` and ``refusal_by_name`` (what a mask
selects); ``viewed``;
``raised`` (the operator `**`), ``compared_with_no_number`` (`x == None`) and ``rounded_to_int``
(`round(x)`); ``adopted`` (foreign arrays);
``ufunc_of_tracers``, ``function_of_tracers``, ``ufunc_of_arrays`` and ``function_of_arrays``
(NumPy's protocols); ``jit``."""
