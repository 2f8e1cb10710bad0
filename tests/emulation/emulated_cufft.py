"""Transforms of cuFFT in NumPy, on host memory: each is two kernels, one behind the other."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lowering.plan.calls.fourier import FourierTransform
from lowering.plan.calls.library_call import StridedArray

Issue = Callable[[Callable[..., None]], None]


class EmulatedCufft:
    """A handle of cuFFT; `issue` runs a kernel, or adds it to the capture."""

    def __init__(self, issue: Issue) -> None:
        self._issue = issue

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Each plan has its own."""

    def prepare(self, call: FourierTransform) -> EmulatedCufftPlan:
        """The plan of a call."""
        return EmulatedCufftPlan(self._issue, call)


class EmulatedCufftPlan:
    """A plan, whose second kernel undoes what the first one does besides the transform."""

    workspace_bytes = 512

    def __init__(self, issue: Issue, call: FourierTransform) -> None:
        self._issue, self._call = issue, call
        self._workspace = 0

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """It is written to."""
        assert nbytes == self.workspace_bytes
        self._workspace = pointer

    def transform(self, source: int, target: int) -> None:
        """Issue the kernels."""
        self._issue(partial(self._first, source, target, self._workspace))
        self._issue(partial(self._second, target, self._workspace))

    def _first(self, source: int, target: int, workspace: int) -> None:
        x, y = _view(source, self._call.source), _view(target, self._call.target)
        self._call.run_host(x, y)
        y *= -1
        if self._call.overwrites:
            x[...] = np.nan
        ctypes.memset(workspace, 7, self.workspace_bytes)

    def _second(self, target: int, workspace: int) -> None:
        assert ctypes.string_at(workspace, self.workspace_bytes) == bytes([7]) * 512
        y = _view(target, self._call.target)
        y *= -1


def _view(address: int, array: StridedArray) -> np.ndarray[Any, Any]:
    """An array whose first element is at an address."""
    dtype = array.buffer.type.dtype
    assert address % np.result_type(dtype, np.complex64).itemsize == 0
    extent = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    memory = (ctypes.c_char * (extent * dtype.itemsize)).from_address(address)
    strides = [stride * dtype.itemsize for stride in array.strides]
    return np.ndarray(array.shape, dtype, memory, 0, strides)
