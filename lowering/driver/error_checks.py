"""Error checks: results of driver calls become exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from cuda.bindings import driver

from tracegraph.errors import DeviceLostError

_T = TypeVar("_T")

SUCCESS = driver.CUresult.CUDA_SUCCESS
NOT_READY = driver.CUresult.CUDA_ERROR_NOT_READY
_OUT_OF_MEMORY = driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
LOST = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "CONTAINED",
        "EXTERNAL_DEVICE",
        "HARDWARE_STACK_ERROR",
        "ILLEGAL_ADDRESS",
        "ILLEGAL_INSTRUCTION",
        "INVALID_ADDRESS_SPACE",
        "INVALID_PC",
        "LAUNCH_FAILED",
        "LAUNCH_TIMEOUT",
        "MISALIGNED_ADDRESS",
        "MPS_CLIENT_TERMINATED",
        "TENSOR_MEMORY_LEAK",
    )
)
"""Sticky errors: after one of them, every call of the driver fails until the process ends."""


class CudaError(RuntimeError):
    """A call of the CUDA driver failed.

    Attributes:
        name: the driver's name of the error, such as ``"CUDA_ERROR_INVALID_VALUE"``.
        message: what the driver says about it.
        operation: the driver function that was called.
    """

    def __init__(self, name: str, message: str, operation: str) -> None:
        super().__init__(name, message, operation)
        self.name = name
        self.message = message
        self.operation = operation

    def __str__(self) -> str:
        return f"{self.operation} failed with {self.name}: {self.message}"


class CudaMemoryError(CudaError, MemoryError):
    """A call of the CUDA driver failed for lack of memory."""


def check(operation: str, answer: tuple[Any, ...]) -> Any:
    """The values that a driver call returned: none, one, or a tuple.

    Raises:
        DeviceLostError: an earlier launch has failed on the device.
        CudaMemoryError: the device, or the driver, has not enough memory for it.
        CudaError: the call did not succeed for another reason.
    """
    result, *values = answer
    if result != SUCCESS:
        _require_device(result)
        kind = CudaMemoryError if result == _OUT_OF_MEMORY else CudaError
        raise kind(result.name, message_of(result), operation)
    return values[0] if len(values) == 1 else tuple(values) or None


def called(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """What a function of the driver returns, its result left out.

    Raises:
        CudaError: as `check`.
    """
    return check(function.__name__, function(*arguments))


def by_core(call: Callable[[], _T]) -> _T:
    """What a call of cuda.core returns.

    Raises:
        DeviceLostError: an earlier launch has failed on the device.
        Exception: cuda.core's, for another reason.
    """
    try:
        return call()
    except Exception:
        _require_device()
        raise


def _require_device(result: Any = None) -> None:
    """Raise DeviceLostError if `result` is a sticky error.

    Without a result, another driver call gives one: errors of cuda.core may not say why they arose.
    """
    if result is None:
        result, *_ = driver.cuMemGetInfo()
    if result.name in LOST:
        raise DeviceLostError(result.name)


@contextmanager
def scarce(what: str) -> Iterator[None]:
    """Turn a lack of memory that a library reports its own way into a MemoryError about `what`."""
    try:
        yield
    except Exception as error:
        _require_device()
        if isinstance(error, MemoryError) or "OUT_OF_MEMORY" not in str(error):
            raise
        raise MemoryError(what) from error


def message_of(result: Any) -> str:
    """What the driver says about a result."""
    found, text = driver.cuGetErrorString(result)
    return text.decode() if found == SUCCESS and text else "the driver has no description"
