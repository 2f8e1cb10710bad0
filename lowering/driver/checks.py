"""Checking the answers of driver calls."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

SUCCESS = driver.CUresult.CUDA_SUCCESS


class CudaError(RuntimeError):
    """A call of the CUDA driver failed.

    Attributes:
        name: the driver's name of the error, such as ``"CUDA_ERROR_INVALID_VALUE"``.
        operation: the driver function that was called.
    """

    def __init__(self, name: str, message: str, operation: str) -> None:
        super().__init__(f"{operation} failed with {name}: {message}")
        self.name = name
        self.operation = operation


def check(operation: str, answer: tuple[Any, ...]) -> Any:
    """The values of a driver call's `answer`: none, one, or a tuple.

    Raises:
        CudaError: the call did not succeed.
    """
    result, *values = answer
    if result != SUCCESS:
        raise CudaError(result.name, _message(result), operation)
    return values[0] if len(values) == 1 else tuple(values) or None


def _message(result: Any) -> str:
    found, text = driver.cuGetErrorString(result)
    return text.decode() if found == SUCCESS and text else "the driver has no description"
