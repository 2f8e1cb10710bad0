"""Calls of the host: debug_callback and host_call (effects), pure_callback (an answer)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.callbacks import HostCall, HostFunction
from tracegraph.ir.derivative import Constant, Emitter, NoDerivativeError, Rewrite
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Effect, Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType, type_of

Array = np.ndarray[Any, Any]

_CFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
"""The type of C functions that programs call; a call releases the GIL."""


def own(arrays: Sequence[Array]) -> list[Array]:
    """Copies of arrays, for a function that may keep them."""
    return [np.array(array) for array in arrays]


def answer(callback: HostFunction, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Call a function on copies of arrays; its results, of the types that were declared.

    Raises:
        CallbackResultError: a result has another type.
        Exception: what the function raises.
    """
    leaves = callback.call(*own(arrays))
    if not callback.results:
        return ()
    return tuple(
        [
            _as_declared(callback, path, leaf, type_)
            for path, leaf, type_ in zip(callback.paths, leaves, callback.results, strict=True)
        ]
    )


def _as_declared(callback: HostFunction, path: str, leaf: Any, type_: ArrayType) -> Array:
    """A result as an array: Python numbers take the dtype, others must have it."""
    try:
        found = type_of(leaf)
    except (TypeError, OverflowError) as error:
        raise errors.CallbackResultError(callback.name, path, str(error), type_) from None
    weaker = found.weak and np.can_cast(found.dtype, type_.dtype, "same_kind")
    if found.shape != type_.shape or not (weaker or found.dtype == type_.dtype):
        raise errors.CallbackResultError(callback.name, path, f"it is {found}", type_)
    return np.asarray(leaf, type_.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class CCall:
    """A C function, the address that it is called with, and what both need to stay alive."""

    function: int
    argument: int
    owners: tuple[Any, ...]

    @classmethod
    def of(cls, call: HostCall) -> CCall:
        """The call, on a copy of its data if it has any."""
        if call.data is None:
            return cls(call.function, call.argument, (call.owner,))
        memory = ctypes.create_string_buffer(call.data, max(len(call.data), 1))
        return cls(call.function, ctypes.addressof(memory), (call.owner, memory))

    def run(self) -> None:
        """Call it here."""
        _CFunction(self.function)(self.argument)


def _callback_type(token: ArrayType, *arrays: ArrayType, callback: HostFunction) -> ArrayType:
    return _token(token)


def _callback(token: Array, *arrays: Array, callback: HostFunction) -> Array:
    answer(callback, arrays)
    return token


def _host_type(token: ArrayType, *before: ArrayType, call: HostCall) -> ArrayType:
    return _token(token)


def _host(token: Array, *before: Array, call: HostCall) -> Array:
    CCall.of(call).run()
    return token


def _token(token: ArrayType) -> ArrayType:
    if token != TOKEN:
        raise TypeError(f"the first operand must be a token, {TOKEN}, not {token}")
    return token


def _pure_type(*arrays: ArrayType, callback: HostFunction) -> tuple[ArrayType, ...]:
    return callback.results


def _pure(*arrays: Array, callback: HostFunction) -> tuple[Array, ...]:
    return answer(callback, arrays)


def _samples() -> Sequence[Sample]:
    returned = (ArrayType(np.dtype(np.float64), (3,)), ArrayType(np.dtype(np.int32)))
    paths = ("result[0]", "result[1]")
    double = HostFunction(
        "double", lambda x: (2 * x, np.int32(x.size)), returned, paths, "sequential"
    )
    return (Sample((np.arange(3.0),), {"callback": double}),)


def _no_derivative(f: Emitter, out: Any, *operands: Any, callback: HostFunction) -> Any:
    """None is known: the user gives one by `custom_jvp` or `custom_vjp`."""
    raise NoDerivativeError(
        f"nothing is known of the derivative of {callback.name}; give it one by "
        "tracegraph.custom_jvp or tracegraph.custom_vjp around the call, or keep it out of the "
        "derivative with tracegraph.stop_gradient on its arguments"
    )


debug_callback = register(
    Op(
        "debug_callback",
        "Calls a function of the host.",
        _callback_type,
        _callback,
        Effect(),
        lambda: (),
        derivative=Constant(),
    )
)

host_call = register(
    Op(
        "host_call",
        "Calls a C function of the host.",
        _host_type,
        _host,
        Effect(),
        lambda: (),
        derivative=Constant(),
    )
)

pure_callback = register(
    Op(
        "pure_callback",
        "What a function of the host answers.",
        _pure_type,
        _pure,
        Opaque(of_program=True),
        _samples,
        derivative=Rewrite(_no_derivative, _no_derivative),
    )
)
