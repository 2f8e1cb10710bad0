"""Functional updates: `x.at[index].set(value)` is a new array, and leaves `x` as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracegraph.errors import refuses, value_text
from tracegraph.tracing.function_table import FUNCTIONS

_OF_JAX = {
    "unique_indices": "it is called unique",
    "indices_are_sorted": "nothing depends on it",
    "wrap_negative_indices": "a negative index counts from the end",
    "out_sharding": "a call runs on one GPU",
}

_refuses_for_reads = refuses(
    **_OF_JAX,
    mode="a traced index out of range reads the nearest element; numpy.take(x, i, mode='wrap') "
    "reads modulo the extent",
    fill_value="write numpy.where((0 <= i) & (i < len(x)), x[i], fill_value)",
)
_refuses_for_writes = refuses(
    **_OF_JAX,
    mode="a traced index out of range changes nothing; write numpy.clip(i, 0, len(x) - 1) as the "
    "index to change the nearest element",
)


class At:
    """`x.at`: indexed updates that give a new array and leave `x` as it is."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> IndexedUpdate:
        return IndexedUpdate(self._array, index)


class IndexedUpdate:
    """`x.at[index]`: an array and an index, waiting for what to do there.

    Values are cast to the dtype of the array. An element that is named twice is updated twice.

    With `unique=True`, the caller promises that index arrays name no element twice; updates that
    are dropped, since they are out of range, do not count. Then updates need neither atomic
    operations nor an order, and products have derivatives. Where the promise is broken, the values
    of elements named twice are undefined, and a `tracegraph.check_indices` block raises a
    `RepeatedIndexError`. A `unique` that is not a bool raises a TypeError.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._index = index

    @_refuses_for_reads
    def get(self, *, unique: bool = False) -> Any:
        """The selected elements, `x[index]`."""
        return FUNCTIONS["getitem"](self._array, self._index, unique=_checked(unique))

    @_refuses_for_writes
    def set(self, value: Any, *, unique: bool = False) -> Any:
        """The array with the selected elements replaced."""
        return self._updated(value, "set", unique)

    @_refuses_for_writes
    def add(self, value: Any, *, unique: bool = False) -> Any:
        """The array with `value` added to the selected elements."""
        return self._updated(value, "add", unique)

    @_refuses_for_writes
    def subtract(self, value: Any, *, unique: bool = False) -> Any:
        """The array with `value` subtracted from the selected elements."""
        return self._updated(value, "subtract", unique)

    @_refuses_for_writes
    def multiply(self, value: Any, *, unique: bool = False) -> Any:
        """The array with the selected elements multiplied by `value`."""
        return self._updated(value, "multiply", unique)

    @_refuses_for_writes
    def divide(self, value: Any, *, unique: bool = False) -> Any:
        """The array with the selected elements divided by `value`, or by a product of values."""
        return self._updated(value, "divide", unique)

    @_refuses_for_writes
    def power(self, value: Any, *, unique: bool = False) -> Any:
        """The array with the selected elements raised to `value`, or to a product of values."""
        return self._updated(value, "power", unique)

    @_refuses_for_writes
    def min(self, value: Any, *, unique: bool = False) -> Any:
        """The array with the selected elements replaced by their minimum with `value`."""
        return self._updated(value, "minimum", unique)

    @_refuses_for_writes
    def max(self, value: Any, *, unique: bool = False) -> Any:
        """The array with the selected elements replaced by their maximum with `value`."""
        return self._updated(value, "maximum", unique)

    @_refuses_for_writes
    def apply(self, function: Callable[[Any], Any], *, unique: bool = False) -> Any:
        """The array with the selected elements replaced by `function` of them."""
        return self.set(function(self.get(unique=unique)), unique=unique)

    def _updated(self, value: Any, how: str, unique: bool) -> Any:
        array = self._array
        found = FUNCTIONS["updated"](array, self._index, value, how, unique=_checked(unique))
        of_numpy = isinstance(array, np.ndarray) and isinstance(found, np.ndarray)
        return found.view(type(array)) if of_numpy else found

    mul = multiply
    minimum = min
    maximum = max


def _checked(unique: object) -> bool:
    if not isinstance(unique, (bool, np.bool_)):
        raise TypeError(
            f"x.at[index]: unique must be True or False while tracing, got {value_text(unique)}"
        )
    return bool(unique)
