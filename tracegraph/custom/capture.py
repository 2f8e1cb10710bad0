"""tracegraph.capture: the work of another library, captured into the graph at its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tracegraph import errors
from tracegraph.arrays.eager import apply
from tracegraph.custom.options import (
    Batching,
    Derivative,
    checked_batching,
    checked_derivative,
    is_reference,
)
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.ir.custom_kernels import CapturedFunction, CustomKernel
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.ops.custom_kernels import custom_kernel

__all__ = ["capture"]


class CapturingFunction:
    """A function that `tracegraph.capture` made, of arrays.

    `reference` is the NumPy function that runs on the host, or None.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        out: Any,
        host: Callable[..., Any] | None,
        batching: Batching | None,
        derivative: Derivative | None,
    ) -> None:
        self.reference = host
        self._where = errors.function_text(function)
        self._code = CapturedFunction(function)
        self._out, self._batching, self._derivative = out, batching, derivative
        self._by_count: dict[int, KernelCall] = {}
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__doc__ = function.__doc__

    def __call__(self, *arrays: Any) -> Any:
        """The outputs for arrays.

        Raises:
            CustomKernelError: an argument is not an array; or it runs on the host, without a
                function for that.
            CapturedCallError: it cannot be captured.
        """
        try:
            call = self._of(len(arrays))
            operands = []
            for number, value in enumerate(arrays):
                try:
                    operands.append(as_array(value))
                    type_of(operands[-1])
                except TypeError as error:
                    raise call.kernel.error(f"argument {number}: {error}") from None
            launch = call.launch(list(map(type_of, operands)))
            found = apply(custom_kernel, *operands, call=call)
        except BaseException as error:
            hide_frames(error)
            raise
        return (found,) if len(launch.out_types) == 1 and not launch.single else found

    def _of(self, count: int) -> KernelCall:
        """The call with this number of arrays."""
        if count not in self._by_count:
            kernel = CustomKernel(
                name=self.__name__,
                where=self._where,
                reference=self._missing if self.reference is None else self.reference,
                parameters=tuple([f"x{n}" for n in range(count)]),
                code=self._code,
                out=self._out if callable(self._out) else lambda *_: self._out,
                batching=self._batching,
                derivative=self._derivative,
            )
            self._by_count[count] = KernelCall(kernel)
        return self._by_count[count]

    def _missing(self, *arrays: Any) -> Any:
        raise errors.CustomKernelError(
            f"captured call {self._where}",
            "runs on CUDA only; for the host, give a NumPy function of the same inputs as host=",
        )

    def __repr__(self) -> str:
        return f"<captured call {self._where}>"


@entry_point
def capture(
    call: Any,
    *,
    out: Callable[..., Any] | ArrayType | tuple[ArrayType, ...],
    host: Any = None,
    batching: Any = None,
    derivative: Any = None,
) -> CapturingFunction:
    """A function of arrays whose work another library does: cuFFT, CuPy, PyTorch, your own.

    In a traced function, its kernels and copies become nodes of the graph at that place, also in
    loops and branches. On the host, `host` runs.

    `call(stream, *inputs, *outputs)` is not run at launches. It runs when a graph is built: once on
    zeros, so that libraries can load code, and once while `stream` is captured. It has to enqueue
    all work on that stream, which has a `handle` and ``__cuda_stream__``, and to write all of the
    outputs. Arrays have ``__cuda_array_interface__``, are contiguous, and their addresses stay the
    same: arguments are copied there. The function must not wait for the device, and must not
    allocate memory for the work: keep memory in objects that `call` refers to, which the graph
    keeps alive.

    Args:
        call: the function.
        out: the type of the output, or a tuple of types; or a function of the inputs' types.
        host: a NumPy function of the inputs that computes the same.
        batching: as in `tracegraph.kernel`.
        derivative: as in `tracegraph.kernel`; ``"reference"`` differentiates `host`.

    Raises:
        CustomKernelError: `call` or `host` is not a function, or an option has no such value.
        ParametersError: `derivative` is a function of other parameters.

    >>> import numpy as np
    >>> import tracegraph
    >>> copied = tracegraph.capture(
    ...     lambda stream, x, y: None, out=lambda x: x, host=lambda x: x.copy()
    ... )
    >>> copied(np.arange(3.0))
    array([0., 1., 2.])
    """
    for name, given in (("call", call), ("host", host)):
        if not callable(given) and (name == "call" or given is not None):
            got = errors.value_text(given)
            raise errors.CustomKernelError("capture", f"{name} must be a function, not {got}")
    error = partial(errors.CustomKernelError, "capture")
    rule = checked_derivative(derivative, ("primals", "tangents"), "capture", error)
    if is_reference(rule) and host is None:
        raise errors.CustomKernelError(
            "capture", 'derivative="reference" differentiates a NumPy function: give it as host='
        )
    return CapturingFunction(call, out, host, checked_batching(batching, error), rule)
