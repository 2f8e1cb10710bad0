"""Fourier transforms as library calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import log2, prod
from typing import Any, ClassVar

import numpy as np

from lowering.plan.calls.library_call import LibraryCall, StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import Reads, Writes
from lowering.plan.nests.strides import common_stride
from tracegraph.ir.op import Op
from tracegraph.ir.record import record


@record
class TransformLayout:
    """Where the elements of a batch of transforms are, counted in elements.

    Element (i, j, k) of transform b is `b * distance + ((i * e₁ + j) * e₂ + k) * stride`, where
    `extents` has the e: those of arrays of which the transforms' are a part.
    """

    extents: tuple[int, ...]
    stride: int
    distance: int

    @classmethod
    def of(cls, array: StridedArray, rank: int) -> TransformLayout | None:
        """The layout of transforms over the last `rank` axes of an array, if it has one."""
        first = len(array.shape) - rank
        distance = common_stride(array.shape[:first], array.strides[:first])
        strides = _used_strides(array.shape[first:], array.strides[first:])
        if prod(array.shape[:first]) == 1:
            distance = prod(array.shape)  # of one transform any will do
        if distance is None or min(distance, *strides) < 1:
            return None
        extents = []
        for outer, inner in pairwise(strides):
            if outer % inner:
                return None
            extents.append(outer // inner)
        if any(map(int.__lt__, extents, array.shape[first + 1 :])):
            return None
        return cls((array.shape[first], *extents), strides[-1], distance)


def _used_strides(extents: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in which those along one element are the least that fit."""
    found: list[int] = []
    for n, s in zip(reversed(extents), reversed(strides), strict=True):
        least = found[-1] * extents[len(extents) - len(found)] if found else 1
        found.append(least if n == 1 else s)
    return tuple(reversed(found))


@record
class FourierTransform(LibraryCall):
    """An op of `tracegraph.ops.fourier` on arrays in memory.

    If it `overwrites` its operand, the operand is also an output, whose elements nothing may read.
    If it is `recaptured`, its arrays may be arguments and results, which move.
    """

    noun: ClassVar[str] = "a Fourier transform"
    alignment: ClassVar[int] = 16  # a complex128; the library asks for that of a complex number

    op: Op
    attrs: Mapping[str, Any]
    source: Reads[StridedArray]
    target: Writes[StridedArray]
    overwrites: bool
    recaptured: bool = False

    @property
    def writes(self) -> frozenset[Buffer]:
        written = [self.target, self.source] if self.overwrites else [self.target]
        return frozenset([array.buffer for array in written])

    @property
    def movable_arrays(self) -> tuple[StridedArray, ...]:
        if not self.recaptured:
            return ()
        return self.outputs if self.overwrites else self.operands

    @property
    def rank(self) -> int:
        """The number of axes of a transform."""
        rank: int = self.attrs.get("rank", 1)
        return rank

    @property
    def inverse(self) -> bool:
        """Whether frequencies become points."""
        inverse: bool = self.attrs.get("inverse", self.op.name == "irfft")
        return inverse

    @property
    def points(self) -> tuple[int, ...]:
        """The number of points along each of its axes."""
        real = self.target if self.op.name == "irfft" else self.source
        return real.shape[-self.rank :]

    @property
    def batch(self) -> int:
        """The number of transforms."""
        return prod(self.target.shape[: -self.rank])

    @property
    def operations(self) -> int:
        """The usual formula; half of that if points are real."""
        n = prod(self.points)
        each = 5 if self.op.name == "fft" else 2.5
        return round(each * self.batch * n * log2(n))

    @property
    def name(self) -> str:
        batch = f"{self.batch} x " if self.batch > 1 else ""
        inverse = "inverse " if self.op.name == "fft" and self.inverse else ""
        return f"{inverse}{self.op.name} {batch}{'x'.join(map(str, self.points))}"

    @property
    def text(self) -> str:
        how = "  (captured at the addresses of each call)" if self._moving else ""
        return f"{self.name}: {self.target} = {self.source}{how}"

    @property
    def purpose(self) -> str:
        if not self._moving:
            return ""
        moving = " and ".join(map(str, self._moving))
        return f"{self.noun} of {moving} where they are, captured again if they move"

    @property
    def _moving(self) -> tuple[Buffer, ...]:
        """The arguments and results among its arrays, if it has them where they are."""
        arrays = dict.fromkeys([array.buffer for array in self.movable_arrays])
        return tuple([buffer for buffer in arrays if buffer.space in ("input", "output")])

    @property
    def run_host(self) -> Callable[..., object]:
        reference, attrs = self.op.reference, dict(self.attrs)

        def run(source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> None:
            target[...] = reference(source, **attrs)

        return run
