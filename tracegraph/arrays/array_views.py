"""Views of Arrays, as the functions that make them see them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.array import Array


def is_in_host_memory(x: Any) -> bool:
    """Whether `x` is an Array whose views are NumPy's: they share its memory on the host."""
    return type(x) is Array and isinstance(x.data, np.ndarray)


def read_only_view(view: Any, what: str) -> Any:
    """A view through which nothing is written from here on; `what` it is, for the message."""
    if is_in_host_memory(view):
        view.data.setflags(write=False)
    elif getattr(view, "alias", None) is not None:
        view.alias.read_only = what
    return view
