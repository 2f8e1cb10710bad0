"""The frame of an executable: one flat list of arrays, and steps that are bound to places in it.

What has a fixed address (scratch, constants, temporaries) is bound into a step once and for all.
Views of arguments and results are made anew in each call; a step that uses one looks it up when it
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lowering.buffer import Buffer
from lowering.host.arena import Array
from lowering.host.registers import Register, Static, View
from lowering.strides import row_major_strides

Step = Callable[[], object]


class Frame:
    """Arrays by slot.

    `memory` holds the arrays of scratch and constants, `bound` names the buffers that each call
    brings, in the order in which `bind` gets them.
    """

    def __init__(self, memory: Mapping[Buffer, Array], bound: Sequence[Buffer]) -> None:
        self.values: list[Any] = []
        self._fixed: set[int] = set()
        self._resting: list[Any] = []
        self._memory = memory
        self._slots: dict[object, int] = {buffer: self.new_slot() for buffer in bound}
        self._views: list[tuple[int, int, View]] = []  # (slot, slot of the buffer, view)
        self._cells: list[tuple[int, int]] = []  # (slot, slot of the array)

    def new_slot(self, array: Array | memoryview | None = None) -> int:
        """A place in the list; with an array, a place that never changes."""
        self.values.append(array)
        if array is not None:
            self._fixed.add(len(self.values) - 1)
        return len(self.values) - 1

    def slot(self, register: Register) -> int:
        """The slot of a register other than a temporary."""
        key = _key(register)
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = self._place(register)
        return found

    def _place(self, register: Register) -> int:
        match register:
            case Static(array=array):
                return self.new_slot(array)
            case View(buffer=buffer) if buffer in self._memory:
                return self.new_slot(_array(register, self._memory[buffer]))
            case View(buffer=buffer) if _is_whole(register):
                return self._slots[buffer]
            case View(buffer=buffer):
                slot = self.new_slot()
                self._views.append((slot, self._slots[buffer], register))
                return slot
        return self.new_slot()

    def cell(self, slot: int) -> int:
        """The slot of the memory of a single number: a view that Python reads and writes fast."""
        key = ("cell", slot)
        if key not in self._slots:
            if slot in self._fixed:
                found = self.new_slot(memoryview(self.values[slot]))
            else:
                found = self.new_slot()
                self._cells.append((found, slot))
            self._slots[key] = found
        return self._slots[key]

    def bind(self, arrays: Sequence[Array]) -> None:
        """Take the arrays of a call."""
        values = self.values
        values[: len(arrays)] = arrays
        for slot, source, view in self._views:
            values[slot] = _array(view, values[source])
        for slot, source in self._cells:
            values[slot] = memoryview(values[source])

    def seal(self) -> None:
        """No slots will be added: remember what a call must leave behind."""
        self._resting = list(self.values)

    def release(self) -> None:
        """Forget what a call brought and made."""
        self.values[:] = self._resting

    def step(self, function: Callable[..., Any], slots: Sequence[int]) -> Step:
        """A call of `function` on the arrays in these slots."""
        values = self.values
        if self._fixed.issuperset(slots):
            return partial(function, *(values[slot] for slot in slots))
        match tuple(slots):
            case (a,):
                return lambda: function(values[a])
            case (a, b):
                return lambda: function(values[a], values[b])
            case (a, b, c):
                return lambda: function(values[a], values[b], values[c])
        several = tuple(slots)
        return lambda: function(*[values[slot] for slot in several])

    def assigning_step(
        self, function: Callable[..., Any], slots: Sequence[int], output: int
    ) -> Step:
        """The same, with the result put in slot `output`."""
        values, call = self.values, self.step(function, slots)

        def assign() -> None:
            values[output] = call()

        return assign


def _key(register: Register) -> object:
    if isinstance(register, View):
        layout = (register.dtype, register.shape, register.strides, register.offset)
        return (register.buffer, *layout)
    return register


def _array(view: View, memory: Array) -> Array:
    return np.ndarray(view.shape, view.dtype, memory, view.offset, view.strides)


def _is_whole(view: View) -> bool:
    type_ = view.buffer.type
    strides = tuple(n * type_.dtype.itemsize for n in row_major_strides(type_.shape))
    layout = (type_.dtype, type_.shape, strides)
    return view.offset == 0 and (view.dtype, view.shape, view.strides) == layout
