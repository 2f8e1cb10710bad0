"""Arrays of other libraries that a traced function closes over: constants, as NumPy's are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.tracing.operators import ArrayOperators

_OWN = (ArrayOperators, np.ndarray, np.generic, bool, int, float, complex)


def is_foreign(x: Any) -> bool:
    """Whether `x` is an array of another library, such as a CuPy array or a PyTorch tensor."""
    if isinstance(x, _OWN):
        return False
    return hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__")
