"""The instructions of a nest, and the arrays that they read and write before these have addresses.

An array of a nest is an *open mesh*: it has one dimension per axis of the nest. The extent is 1
where the value does not depend on the axis. A value that depends on no axis has no dimension. So a
row is computed once for a whole matrix, and a scalar once for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from lowering.host.arena import Array
from lowering.plan.nests.buffer import Buffer


@dataclass(slots=True, eq=False)
class NumpyValue:
    """An array of a nest; `dims` maps an axis of the nest to the dimension that runs along it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: Mapping[int, int]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements; broadcast elements count each time."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(slots=True, eq=False)
class Static(NumpyValue):
    """Known when the plan is compiled."""

    array: Array


@dataclass(slots=True, eq=False)
class View(NumpyValue):
    """A strided window of a buffer; strides and offset in bytes."""

    buffer: Buffer
    strides: tuple[int, ...]
    offset: int


@dataclass(slots=True, eq=False)
class Temporary(NumpyValue):
    """An intermediate value in the workspace: contiguous, its dimensions in this memory `order`.

    None is row-major.
    """

    order: tuple[int, ...] | None = None


@dataclass(slots=True, eq=False)
class ReversedTemporary(NumpyValue):
    """A view of a temporary with negative strides along some of its dimensions."""

    base: Temporary
    along: frozenset[int]

    @classmethod
    def of(cls, base: Temporary, along: frozenset[int]) -> ReversedTemporary:
        """The same elements, reversed along these dimensions."""
        return cls(base.dtype, base.shape, base.dims, base, along)


@dataclass(slots=True, eq=False)
class DynamicView(NumpyValue):
    """An array that a step returns when it runs: a window of `buffer`, or a new array.

    Its strides are in bytes, None if they are not known before.
    """

    buffer: Buffer | None
    strides: tuple[int, ...] | None = None


@dataclass(slots=True, eq=False)
class Condition(NumpyValue):
    """A Python number: the condition of a conditional node, set by a `SetCondition` signal."""

    number: int


def static(array: Array, axes: tuple[int, ...] = ()) -> Static:
    """A known array; it varies along `axes`, dimension i along axes[i]."""
    return Static(array.dtype, array.shape, {axis: axis for axis in axes}, array)


@dataclass(frozen=True, slots=True)
class UfuncMethod:
    """A method of a ufunc as function(operand, output), with the arguments around the output."""

    ufunc: np.ufunc
    name: str
    before: tuple[Any, ...]
    after: tuple[Any, ...] = ()

    @property
    def bound(self) -> Callable[..., Any]:
        """The method itself."""
        found: Callable[..., Any] = getattr(self.ufunc, self.name)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One NumPy call.

    `write`: function(*inputs, output) fills the output.
    `assign`: function(*inputs) returns the output, a DynamicView or a Condition.
    `effect`: function(*inputs) returns nothing.

    `elementwise`: the output may share memory with an input of the same layout.
    `positive_strides`: NumPy vectorises its loop for positive strides only.
    `keeps`: it reads the output, or leaves some of its elements as they were.
    `whole_axes`: a part of the output along these axes also needs other parts of the inputs.
    `flat`: it writes the output as one contiguous range.
    """

    kind: Literal["write", "assign", "effect"]
    function: Callable[..., Any] | UfuncMethod
    inputs: tuple[NumpyValue, ...]
    output: NumpyValue | None = None
    elementwise: bool = False
    positive_strides: bool = False
    keeps: bool = False
    whole_axes: tuple[int, ...] = ()
    flat: bool = False

    @property
    def folded(self) -> Sequence[int]:
        """The dimensions of its operand that a reduction folds; none for any other call."""
        if not isinstance(self.function, UfuncMethod) or self.function.name != "reduce":
            return ()
        axes: tuple[int, ...] | None = self.function.before[0]
        return range(len(self.inputs[0].shape)) if axes is None else axes

    def renamed(self, names: Mapping[NumpyValue, NumpyValue]) -> Instruction:
        """The same instruction on other values."""
        if names.keys().isdisjoint((*self.inputs, self.output)):
            return self
        inputs = tuple(names.get(value, value) for value in self.inputs)
        output = self.output
        return replace(
            self, inputs=inputs, output=output if output is None else names.get(output, output)
        )
