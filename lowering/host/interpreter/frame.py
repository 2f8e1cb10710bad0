"""The frame of a plan: a place for the array of each value.

Scratch, constants and temporaries have fixed addresses: their arrays are in the frame for good.
Arguments, results, views of both, and what steps return are there only while a call runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.code import Copied, fill_with_poison, result_maker
from lowering.host.interpreter.instructions import NumpyValue, Static, Temporary, View
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan
from tracegraph.ir.types import row_major_strides

Step = Callable[[], object]
"""A part of a call."""

IN_PLACE = 257
"""The flags of an array that is C-contiguous and aligned."""


class Frame:
    """The arrays of values; `memory` has those of scratch and constants."""

    def __init__(self, plan: Plan, memory: Mapping[Buffer, Array]) -> None:
        self.copied = Copied()
        self.conditions: list[Any] = [0] * plan.conditions
        self.check_time: Callable[[], None] | None = None
        self._memory = memory
        self._arrays: list[Any] = []
        self._places: dict[object, int] = {}
        self._fixed: set[int] = set()
        self._views: list[tuple[int, int, Callable[[Array], Array]]] = []
        self._inputs = [(self._bound(buffer), buffer.type.dtype) for buffer in plan.inputs]
        fresh = dict.fromkeys(b for b in plan.outputs if b.space == "output")
        self._results = [(self._bound(b), result_maker(b.type)) for b in fresh]
        self._outputs = [self._bound(buffer) for buffer in plan.outputs]

    # -- places ---------------------------------------------------------------------------------

    def _place(self, key: object, array: Array | None = None) -> int:
        """The place of a key, new if it has none; that of an `array` which never moves is fixed."""
        if key not in self._places:
            self._places[key] = len(self._arrays)
            if array is not None:
                self._fixed.add(len(self._arrays))
            self._arrays.append(array)
        return self._places[key]

    def _bound(self, buffer: Buffer) -> int:
        return self._place(("bound", buffer))

    def put(self, value: Temporary, array: Array) -> None:
        """Note the array of a temporary."""
        self._place(value, array)

    def place(self, value: NumpyValue) -> int:
        """The place of a value."""
        if isinstance(value, Static):
            return self._place(value, value.array)
        if not isinstance(value, View):
            return self._place(value)
        key = (value.buffer, value.dtype, value.shape, value.strides, value.offset)
        if key in self._places:
            return self._places[key]
        made = partial(_view, value)
        if value.buffer in self._memory:
            return self._place(key, made(self._memory[value.buffer]))
        whole = self._places["bound", value.buffer]
        if is_whole(value):
            self._places[key] = whole
            return whole
        self._views.append((self._place(key), whole, made))
        return self._places[key]

    # -- steps ----------------------------------------------------------------------------------

    def call(self, function: Callable[..., Any], values: Sequence[NumpyValue]) -> Step:
        """A step that calls a function of the arrays of values."""
        arrays, places = self._arrays, [self.place(value) for value in values]
        if self._fixed.issuperset(places):
            return partial(function, *(arrays[place] for place in places))
        if len(places) == 1:
            (only,) = places
            return lambda: function(arrays[only])
        chosen = itemgetter(*places)
        return lambda: function(*chosen(arrays))

    def assign(
        self, function: Callable[..., Any], values: Sequence[NumpyValue], output: NumpyValue
    ) -> Step:
        """A step that calls a function which returns the array of `output`."""
        made, arrays, place = self.call(function, values), self._arrays, self.place(output)

        def step() -> None:
            arrays[place] = made()

        return step

    def number(self, value: NumpyValue) -> Callable[[], Any]:
        """A function that returns the element of a value without axes, as a Python number."""
        return self.call(np.ndarray.item, (value,))

    # -- calls ----------------------------------------------------------------------------------

    def function(
        self, steps: Sequence[Step], poisoned: Sequence[Array] | None
    ) -> Callable[[Sequence[Any], Callable[[], None] | None], list[Array]]:
        """A function that binds arguments, runs steps, and returns results.

        Before each call it poisons the arrays in `poisoned` and the results, if given.
        """
        arrays = self._arrays
        of_a_call = [n for n in range(len(arrays)) if n not in self._fixed]

        def run(arguments: Sequence[Any], check_time: Callable[[], None] | None) -> list[Array]:
            try:
                self._bind(arguments)
                if poisoned is not None:
                    for memory in (*poisoned, *(arrays[place] for place, _ in self._results)):
                        fill_with_poison(memory)
                self.check_time = check_time
                for step in steps:
                    step()
                return [arrays[place] for place in self._outputs]
            finally:
                self.check_time = None
                for place in of_a_call:
                    arrays[place] = None

        return run

    def _bind(self, arguments: Sequence[Any]) -> None:
        """Fill the places of arguments, results and their views."""
        arrays = self._arrays
        self.conditions[:] = [0] * len(self.conditions)
        for number, (place, dtype) in enumerate(self._inputs):
            array = arguments[number]
            if type(array) is not np.ndarray:  # a number
                array = np.array(array, dtype)
            if array.flags.num & IN_PLACE != IN_PLACE:
                array = self.copied.contiguous(number, array)
            arrays[place] = array
        for place, make in self._results:
            arrays[place] = make()
        for place, whole, view in self._views:
            arrays[place] = view(arrays[whole])


def is_whole(view: View) -> bool:
    """Whether a view is the array of its buffer."""
    type_ = view.buffer.type
    if view.offset or view.dtype != type_.dtype or view.shape != type_.shape:
        return False
    size = type_.dtype.itemsize
    return all(
        n == 1 or stride == step * size
        for n, stride, step in zip(
            view.shape, view.strides, row_major_strides(view.shape), strict=True
        )
    )


def _view(view: View, array: Array) -> Array:
    return np.ndarray(view.shape, view.dtype, array, view.offset, view.strides)
