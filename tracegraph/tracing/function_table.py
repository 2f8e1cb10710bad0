"""Late binding: the functions that operators and methods of arrays call, by name.

They are those of `tracegraph.numpy`, which is built on the classes that have the methods. So the
table is empty here, and `numpy/methods.py` fills it when the package is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Besides NumPy's names: ``getitem``, ``setitem`` and ``updated`` (indexing); ``namespace`` (the
module); ``adopted`` (foreign arrays); ``ufunc_of_tracers``, ``function_of_tracers``,
``ufunc_of_arrays`` and ``function_of_arrays`` (NumPy's protocols)."""
