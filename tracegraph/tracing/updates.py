"""Functional updates: `x.at[index].set(value)` is a new array, and leaves `x` as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracegraph.tracing.function_table import FUNCTIONS


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
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._index = index

    def get(self) -> Any:
        """The selected elements, `x[index]`."""
        return self._array[self._index]

    def set(self, value: Any) -> Any:
        """The array with the selected elements replaced."""
        return self._updated(value, "set")

    def add(self, value: Any) -> Any:
        """The array with `value` added to the selected elements."""
        return self._updated(value, "add")

    def subtract(self, value: Any) -> Any:
        """The array with `value` subtracted from the selected elements."""
        return self._updated(value, "subtract")

    def multiply(self, value: Any) -> Any:
        """The array with the selected elements multiplied by `value`."""
        return self._updated(value, "multiply")

    def divide(self, value: Any) -> Any:
        """The array with the selected elements divided by `value`, or by a product of values."""
        return self._updated(value, "divide")

    def power(self, value: Any) -> Any:
        """The array with the selected elements raised to `value`, or to a product of values."""
        return self._updated(value, "power")

    def min(self, value: Any) -> Any:
        """The array with the selected elements replaced by their minimum with `value`."""
        return self._updated(value, "minimum")

    def max(self, value: Any) -> Any:
        """The array with the selected elements replaced by their maximum with `value`."""
        return self._updated(value, "maximum")

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """The array with the selected elements replaced by `function` of them."""
        return self.set(function(self.get()))

    def _updated(self, value: Any, how: str) -> Any:
        return FUNCTIONS["updated"](self._array, self._index, value, how)

    mul = multiply
    minimum = min
    maximum = max
