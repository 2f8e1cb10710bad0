"""Registers: the arrays that the steps of a nest read and write, before they have addresses.

An array of a nest is an *open mesh*: it has one dimension per axis of the nest, of extent 1 where
the value does not depend on the axis, or no dimension at all if it depends on none. So a row is
computed once for a whole matrix, and a scalar once for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any, Literal

import numpy as np

from lowering.host.arena import Array
from lowering.plan.buffer import Buffer
from tracegraph.ir.types import row_major_strides


@dataclass(slots=True, eq=False)
class NumpyValue:
    """An array to be; `dims` says which dimension runs along an axis of the nest."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: Mapping[int, int]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements, each counted once for every place that it is seen at."""
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
    """An intermediate value, in the workspace.

    Its elements lie in the order of the dimensions, or in another `order`: as those of what it is
    made of, so that no call reads across memory and writes along it.
    """

    order: tuple[int, ...] | None = None


@dataclass(slots=True, eq=False)
class ReversedTemporary(NumpyValue):
    """A temporary seen from its last element to its first along some of its dimensions."""

    base: Temporary
    along: frozenset[int]

    @classmethod
    def of(cls, base: Temporary, along: frozenset[int]) -> ReversedTemporary:
        """The same elements, along these dimensions the other way round."""
        return cls(base.dtype, base.shape, base.dims, base, along)


@dataclass(slots=True, eq=False)
class DynamicView(NumpyValue):
    """An array that a step makes when it runs: a window of `buffer`, or a new array; its strides in
    bytes, as far as they can be told.
    """

    buffer: Buffer | None
    strides: tuple[int, ...] | None = None


@dataclass(slots=True, eq=False)
class Condition(NumpyValue):
    """A Python number: the condition of a conditional node, in `lowering.kernel.SetCondition`."""

    number: int


def memory_order(register: NumpyValue) -> tuple[int, ...] | None:
    """The dimensions of a register from the outermost to the innermost in memory, None if row-major
    is as good.
    """
    if isinstance(register, Temporary):
        return register.order
    if isinstance(register, ReversedTemporary):
        return register.base.order
    if not isinstance(register, View | DynamicView) or register.strides is None:
        return None
    strides = [abs(stride) for stride in register.strides]
    ranked = [dim for dim, extent in enumerate(register.shape) if extent > 1 and strides[dim]]
    if all(strides[a] >= strides[b] for a, b in pairwise(ranked)):
        return None
    flat = [dim for dim in range(len(strides)) if dim not in ranked]
    return (*flat, *sorted(ranked, key=lambda dim: -strides[dim]))


def innermost(register: NumpyValue) -> int | None:
    """The dimension along which elements lie next to each other."""
    order = memory_order(register) or range(len(register.shape))
    return next((dim for dim in reversed(order) if register.shape[dim] > 1), None)


def reversed_view(view: View, along: Iterable[int]) -> View:
    """The same elements, those along these dimensions from the last to the first."""
    last = sum((view.shape[dim] - 1) * view.strides[dim] for dim in along)
    strides = tuple(-s if dim in along else s for dim, s in enumerate(view.strides))
    return replace(view, strides=strides, offset=view.offset + last)


def backwards(register: NumpyValue) -> frozenset[int]:
    """The dimensions along which later elements lie before earlier ones."""
    match register:
        case View(shape=shape, strides=strides) | DynamicView(shape=shape, strides=tuple(strides)):
            reversed_ = enumerate(zip(shape, strides, strict=True))
            return frozenset(dim for dim, (n, stride) in reversed_ if n > 1 and stride < 0)
        case ReversedTemporary(along=along):
            return along
    return frozenset()


def forwards(register: NumpyValue, dims: Iterable[int]) -> NumpyValue:
    """The same elements, those along these dimensions in the order of memory."""
    against = backwards(register).intersection(dims)
    if not against or isinstance(register, DynamicView):
        return register
    if isinstance(register, View):
        return reversed_view(register, against)
    assert isinstance(register, ReversedTemporary)
    left = register.along - against
    return ReversedTemporary.of(register.base, left) if left else register.base


def is_range(register: NumpyValue) -> bool:
    """Whether the elements lie next to each other, in the order of memory."""
    if not isinstance(register, View):
        return isinstance(register, Temporary)
    order = memory_order(register) or range(len(register.shape))
    dense = row_major_strides(tuple(register.shape[dim] for dim in order))
    size = register.dtype.itemsize
    return all(
        register.shape[dim] == 1 or register.strides[dim] == step * size
        for dim, step in zip(order, dense, strict=True)
    )


def static(array: Array, axes: tuple[int, ...] = ()) -> Static:
    """A register of a known array; it varies along `axes`, dimension i being axis i."""
    return Static(array.dtype, array.shape, {axis: axis for axis in axes}, array)


@dataclass(frozen=True, slots=True)
class Method:
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

    `write`: function(*inputs, output) fills the output. `assign`: the result becomes the output,
    which is DynamicView or a Condition.
    `effect`: function(*inputs), for what it does.
    `elementwise`: the output may be the memory of an input of the same layout.
    `forwards`: it takes up to twenty times as long where it reads elements from the last to the
    first, for NumPy has vectorised its loop for the other direction alone.
    `keeps`: elements that the output held before stay, or are read.
    `whole_axes`: those along which a part of the output needs more than that part of the inputs.
    `flat`: it takes the output for one range of elements, in the order of that output's memory.
    """

    kind: Literal["write", "assign", "effect"]
    function: Callable[..., Any] | Method
    inputs: tuple[NumpyValue, ...]
    output: NumpyValue | None = None
    elementwise: bool = False
    forwards: bool = False
    keeps: bool = False
    whole_axes: tuple[int, ...] = ()
    flat: bool = False

    @property
    def folded(self) -> Sequence[int]:
        """The dimensions of its operand that it folds; none if it is no fold."""
        if not isinstance(self.function, Method) or self.function.name != "reduce":
            return ()
        axes: tuple[int, ...] | None = self.function.before[0]
        return range(len(self.inputs[0].shape)) if axes is None else axes

    def renamed(self, names: Mapping[NumpyValue, NumpyValue]) -> Instruction:
        """The same with other registers for those that have another name."""
        if names.keys().isdisjoint((*self.inputs, self.output)):
            return self
        inputs = tuple(names.get(register, register) for register in self.inputs)
        output = self.output
        return replace(
            self, inputs=inputs, output=output if output is None else names.get(output, output)
        )
