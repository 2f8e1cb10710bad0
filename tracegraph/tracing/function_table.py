"""Late binding: functions that arrays call and that are built on arrays, by name.

Operators and methods of arrays call the functions of `tracegraph.numpy`; eager ops on a device call
`jit`. So the table is empty here. `numpy/methods.py` and `staging/jit.py` fill it when the package
is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SPECIAL: dict[str, Callable[..., Any]] = {}
"""The functions of `tracegraph.special`, by name; filled when that is imported."""

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Besides NumPy's names: ``getitem``, ``setitem`` and ``updated`` (indexing), and
``cast_to``, ``setitem_of_selected``, ``apply_to_selected`` and ``refusal_by_name`` (what a mask
selects); ``viewed``;
``raised`` (the operator `**`), ``compared_with_no_number`` (`x == None`) and ``rounded_to_int``
(`round(x)`); ``namespace`` (the module); ``adopted`` (foreign arrays);
``ufunc_of_tracers``, ``function_of_tracers``, ``ufunc_of_arrays`` and ``function_of_arrays``
(NumPy's protocols); ``jit``."""
