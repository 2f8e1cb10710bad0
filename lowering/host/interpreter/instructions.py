"""The instructions of a nest, and the arrays that they read and write before these have addresses.

An array of a nest is an *open mesh*: it has one dimension per axis of the nest. The extent is 1
where the value does not depend on the axis. A value that depends on no axis has no dimension. So a
row is computed once for a whole matrix, and a scalar once for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Literal

import numpy as np

from lowering.host.arena import Array
from lowering.plan.nests.buffer import Buffer
from tracegraph.generated.dataclass import dataclass


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
    """An intermediate value in the workspace, contiguous in row-major order."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One NumPy call.

    `write`: function(*inputs, output) fills the output.
    `assign`: function(*inputs) returns the output, a DynamicView or a Condition.
    `effect`: function(*inputs) returns nothing.
    """

    kind: Literal["write", "assign", "effect"]
    function: Callable[..., Any]
    inputs: tuple[NumpyValue, ...]
    output: NumpyValue | None = None

    def reading(self, names: Mapping[NumpyValue, NumpyValue]) -> Instruction:
        """The same instruction on other inputs."""
        return replace(self, inputs=tuple(names.get(value, value) for value in self.inputs))
