"""What functions that make arrays give outside of traced functions: NumPy's arrays, with `.at`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.tracing.updates import At


class EagerArray(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array that has `x.at[index].set(value)`, as traced values and Arrays do.

    So the same function runs under NumPy as it is. Otherwise it is a NumPy array like any other:
    it may be written to, and what NumPy computes of it is NumPy's own.
    """

    __slots__ = ()

    @property
    def at(self) -> At:
        """Functional updates: `x.at[index].set(value)` is a new array."""
        return At(self)

    def __array_wrap__(
        self, found: Any, context: Any = None, return_scalar: bool = False, /
    ) -> Any:
        return found[()] if return_scalar else found

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


def eager(array: Any) -> Any:
    """A new array of NumPy's, with `.at`; anything else itself."""
    return array.view(EagerArray) if type(array) is np.ndarray else array
