"""Arrays of other libraries that a traced function closes over: constants, as NumPy's are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracegraph.tracing.operators import ArrayOperators

if TYPE_CHECKING:
    from tracegraph.arrays.array import Array

_OWN = (ArrayOperators, np.ndarray, np.generic, bool, int, float, complex)


def is_foreign(x: Any) -> bool:
    """Whether `x` is an array of another library, such as a CuPy array or a PyTorch tensor."""
    if isinstance(x, _OWN):
        return False
    return hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__")


def adopted(x: Any) -> Array:
    """The elements of a foreign array as they are now, where they are: others may write to it.

    Raises:
        TypeError: a dtype that arrays cannot have.
    """
    from tracegraph.arrays.creation import asarray  # built on jit, which is built on traces

    array: Array = asarray(x)
    return array
