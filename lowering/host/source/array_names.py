"""Names: what values are called in the function of a plan.

Scratch, constants and temporaries have fixed addresses: each is an array that is a global of the
function. Views of arguments and results are made at the start of each call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation.instructions import Condition, DynamicView, NumpyValue, Static, View
from lowering.host.source.python_source import PythonSource
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.types import row_major_strides


class Frame:
    """Names of values.

    `memory` has the arrays of scratch and constants, `bound` the names of arguments and results.
    `dense` collects the arguments that must be contiguous: those with views, and those that are
    read more than once.
    """

    def __init__(
        self, source: PythonSource, memory: Mapping[Buffer, Array], bound: Mapping[Buffer, str]
    ) -> None:
        self.source = source
        self.dense: set[Buffer] = set()
        self._memory = memory
        self._bound = bound
        self._read: set[Buffer] = set()
        self._names: dict[object, str] = {}
        self._arrays: dict[str, Array] = {}
        self._loops = 0

    def enter_loop(self) -> None:
        """Values that are named from here on may be read many times."""
        self._loops += 1

    def leave_loop(self) -> None:
        """End what `enter_loop` began."""
        self._loops -= 1

    def fixed(self, array: Array) -> str:
        """The name of an array that never moves."""
        name = self.source.name(array)
        self._arrays[name] = array
        return name

    def arrays(self, names: Sequence[str]) -> list[Array]:
        """The arrays of these names if all have fixed addresses, else none."""
        found = [self._arrays[name] for name in names if name in self._arrays]
        return found if len(found) == len(names) else []

    def name(self, value: NumpyValue) -> str:
        """The name of a value other than a temporary."""
        if isinstance(value, View) and value.buffer in self._bound:
            return self._bound_name(value, value.buffer)
        key = _key(value)
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = self._new_name(value)
        return found

    def _new_name(self, value: NumpyValue) -> str:
        match value:
            case Static(array=array):
                return self.fixed(array)
            case View(buffer=buffer):
                memory = self._memory[buffer]
                view = (value.shape, value.dtype, memory, value.offset, value.strides)
                return self.fixed(np.ndarray(*view))
            case Condition(number=number):
                return condition(number)
        return self.source.variable()

    def _bound_name(self, view: View, buffer: Buffer) -> str:
        name = self._bound[buffer]
        if is_whole(view):
            if self._loops or buffer in self._read:
                self.dense.add(buffer)
            self._read.add(buffer)
            return name
        self.dense.add(buffer)
        key = _key(view)
        if key not in self._names:
            self._names[key] = variable = self.source.variable()
            array, dtype = self.source.name(np.ndarray), self.source.name(view.dtype)
            made = f"{array}({view.shape}, {dtype}, {name}, {view.offset}, {view.strides})"
            self.source.first(f"{variable} = {made}")
        return self._names[key]

    def read_directly(self, value: NumpyValue) -> None:
        """Note that a step uses the address of a value: it must be contiguous."""
        if isinstance(value, View) and value.buffer in self._bound:
            self.dense.add(value.buffer)

    def number(self, value: NumpyValue, name: str) -> str:
        """The element of a value without axes, called `name`, as a Python number."""
        if isinstance(value, Static) and math.isfinite(number := value.array.item()):
            return repr(number)
        return f"{name}.item()"


def condition(number: int) -> str:
    """The variable of a condition."""
    return f"c{number}"


def _key(value: NumpyValue) -> object:
    match value:
        case View(buffer=buffer):
            return (buffer, value.dtype, value.shape, value.strides, value.offset)
        case Condition(number=number):
            return ("condition", number)
        case Static() | DynamicView():
            return value
    raise TypeError(f"{value!r} has no name: its writer names it")


def is_whole(view: View) -> bool:
    """Whether a view is the array of its buffer."""
    return is_all(view) and view.shape == view.buffer.type.shape


def is_all(view: View) -> bool:
    """Whether a view is all elements of its buffer, in order."""
    type_ = view.buffer.type
    if view.offset or view.dtype != type_.dtype or prod(view.shape) != type_.size:
        return False
    dense = row_major_strides(view.shape)
    size = type_.dtype.itemsize
    return all(
        n == 1 or stride == step * size
        for n, stride, step in zip(view.shape, view.strides, dense, strict=True)
    )
