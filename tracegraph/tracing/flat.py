"""`x.flat`: the elements of an array in row-major order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracegraph.errors.tracebacks import hide_frames
from tracegraph.tracing.function_table import FUNCTIONS


class Flat:
    """The elements in row-major order, as one axis: to read, to iterate, and to write.

    What is read is a copy. Values that are written are cast to the dtype of the array, and repeated
    up to the number of elements at a static index. Traced indices are as in `x[i]`.
    """

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __len__(self) -> int:
        return int(self._array.size)

    def __getitem__(self, index: Any) -> Any:
        """The elements at an integer, a slice, or an array of integers or constant booleans.

        Raises:
            IndexError: a static index is out of range, or of more than one axis.
            BooleanMaskError: a traced mask.
        """
        try:
            return FUNCTIONS["copy"](self._ravelled()[_one_axis(index)])
        except BaseException as error:
            hide_frames(error)
            raise

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write values to the elements at an index.

        Raises:
            IndexError: as in reading.
            ValueError: several values for one element.
            TracerWriteError: the array is an argument of the traced function, or captured.
            ImmutableArrayError: the array is a `tracegraph.Array` that is read-only.
        """
        try:
            self._write(_one_axis(index), value)
        except BaseException as error:
            hide_frames(error)
            raise

    def __iter__(self) -> Iterator[Any]:
        elements = FUNCTIONS["copy"](self._ravelled())
        return (elements[k] for k in range(len(self)))

    def copy(self) -> Any:
        """A new array of the elements, with one axis."""
        return self[:]

    def _ravelled(self) -> Any:
        return FUNCTIONS["ravel"](self._array)

    def _write(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice, np.ndarray, np.generic)):  # traced: a size is known
            changed = self._ravelled().at[index].set(value)
            self._array.assign(FUNCTIONS["reshape"](changed, self._array.shape))
            return
        known: Any = index
        positions = np.arange(len(self))[known]
        if positions.ndim == 0 and np.size(value) != 1:
            raise ValueError("Error setting single item of array: there are several values")
        FUNCTIONS["put"](self._array, positions, value)


def _one_axis(index: Any) -> Any:
    """An index into one axis; a list of static integers as an array.

    Raises:
        IndexError: it is one into no axis, or into several.
    """
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) != 1 or entries[0] is None:
        raise IndexError("too many indices for flat, or none: the elements have one axis")
    (entry,) = entries
    if entry is Ellipsis:
        return slice(None)
    if isinstance(entry, list):
        known = all(isinstance(each, (int, np.integer)) for each in entry)
        return np.array(entry, np.intp) if known else FUNCTIONS["asarray"](entry)
    return entry
