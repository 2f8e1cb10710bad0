"""Calls of the host from a running program: `debug.callback`, `pure_callback` and `host_call`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from tracegraph import errors, tree
from tracegraph.control.regions import Tree, current_for, flatten_checked
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.callbacks import HostCall, HostFunction, VmapMethod
from tracegraph.ir.effects import require_allowed
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType
from tracegraph.ops import callbacks as ops
from tracegraph.tracing.tracer import Tracer
from tracegraph.user_source import user_source

_FUNCTION_POINTER: Any = ctypes.CFUNCTYPE(None).__mro__[1]
"""The base of all function pointers of ctypes, which has no public name."""

_PYTHON_API = 4
"""The flag of ctypes for functions that need the GIL."""


@entry_point
def callback(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Call ``function(*args, **kwargs)`` each time that a running program reaches this line.

    The calls are made in the order of the program, also inside branches and loops. A device does
    not wait for them, unless they come faster than the function takes them. They are made by a
    thread of this package, which is not inside of any block of the caller, such as
    `tracegraph.stream`. By the time that a result of the program is waited for, all are done. What
    the function raises ends the program, and is raised where it is waited for. On the host the
    program itself makes the calls. Under `vmap` each lane makes its own, in the order of lanes. Not
    in the condition of a loop.

    Args:
        function: gets NumPy arrays of its own, and NumPy scalars for arrays without axes. What it
            returns is not used. It may run jitted functions and use CUDA.
        *args: pytrees of arrays and numbers.
        **kwargs: the same, by name.

    Raises:
        NotCallableError: `function` is none.
        LeafTypeError: an argument is not an array or a number.
        EffectInConditionError: it is in the condition of a loop.

    >>> import tracegraph
    >>> seen = []
    >>> @tracegraph.jit
    ... def total(x):
    ...     tracegraph.debug.callback(seen.append, x.max())
    ...     return x.sum()
    >>> float(total(np.array([1.0, 5.0, 2.0]))), seen
    (8.0, [np.float64(5.0)])
    """
    _require_callable("debug.callback", function)
    require_allowed("debug.callback")
    given = flatten_checked((args, kwargs), "debug.callback", "arguments")
    made = HostFunction(
        errors.function_text(function), _caller(function, given), source=user_source()
    )
    trace = current_for(given.leaves)
    if trace is None:
        ops.answer(made, [np.asarray(leaf) for leaf in given.leaves])
    else:
        trace.perform(get("debug_callback"), given.leaves, {"callback": made})


@entry_point
def pure_callback(
    function: Callable[..., Any],
    result_types: Any,
    /,
    *args: Any,
    vmap_method: VmapMethod | None = None,
    time_limit: float | None = 60.0,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, computed by Python on the host.

    The function must be pure: it may be called any number of times, or not at all where its results
    are not used. A device waits for the answer, some 20 µs and what the function takes. On the host
    the program itself makes the calls; on a device, a thread of this package. What the function
    raises ends the program, and is raised where that is waited for.

    It has no derivative: give it one by `custom_jvp` or `custom_vjp`.

    Args:
        function: gets NumPy arrays of its own, and NumPy scalars for arrays without axes. Returns a
            pytree of arrays or numbers. The device waits meanwhile, so it must not wait for that.
        result_types: the same pytree, of `ArrayType` or anything with a shape and a dtype.
        *args: pytrees of arrays and numbers.
        vmap_method: how it is called for many lanes: ``"sequential"``, once for each;
            ``"expand_dims"``, once, with the lanes as axis 0 of each argument and result, and
            extent 1 in arguments that lanes share; ``"broadcast_all"``, the same with all lanes in
            all arguments. Both also pass on lanes that take another branch.
        time_limit: the seconds after which a wait for the program gives up on an answer; None for
            no limit. The host has none.
        **kwargs: as `args`, by name.

    Raises:
        NotCallableError: `function` is none.
        CallbackTypesError: `result_types` has something else than types, or `vmap_method` is none
            of these.
        LeafTypeError: an argument is not an array or a number.
        CallbackResultError: from a wait for the program: a result has another type, or the pytree
            another structure.
        CallbackTimeoutError: from a wait for the program: `time_limit` has passed.
        CallbackBatchError: it is inside `vmap`, without a `vmap_method`.

    >>> import tracegraph
    >>> def roots(coefficients):
    ...     return np.sort(np.roots(coefficients).real)
    >>> @tracegraph.jit
    ... def largest(p):
    ...     return tracegraph.pure_callback(roots, tracegraph.ArrayType("float64", (2,)), p)[-1]
    >>> float(largest(np.array([1.0, -3.0, 2.0])))
    2.0
    """
    _require_callable("pure_callback", function)
    if vmap_method not in (None, *get_args(VmapMethod)):
        listed = ", ".join(map(repr, get_args(VmapMethod)))
        raise errors.CallbackTypesError(
            f"vmap_method must be one of {listed} or None, not {errors.value_text(vmap_method)}"
        )
    _require_seconds(time_limit)
    given = flatten_checked((args, kwargs), "pure_callback", "arguments")
    leaves, structure = tree.flatten(result_types)
    paths = tuple(tree.paths(structure, "result"))
    types = tuple(map(_declared, leaves, paths))
    name = errors.function_text(function)

    def call(*arrays: np.ndarray[Any, Any]) -> Sequence[Any]:
        returned, found = tree.flatten(_caller(function, given)(*arrays)[0])
        if found != structure:
            got, wanted = map(errors.structure_text, (found, structure))
            raise errors.CallbackStructureError(name, got, wanted)
        return returned

    made = HostFunction(name, call, types, paths, vmap_method, time_limit, user_source())
    trace = current_for(given.leaves)
    if trace is None:
        results: Sequence[Any] = ops.answer(made, [np.asarray(leaf) for leaf in given.leaves])
    else:
        atoms = [trace.read(leaf) for leaf in given.leaves]
        results = trace.record(get("pure_callback"), atoms, {"callback": made})
    return tree.unflatten(structure, results)


@entry_point
def host_call(function: Any, /, user_data: Any = None) -> None:
    """Call a C function each time that a running program reaches this line.

    On a device it becomes a host node of the graph: a thread of the driver calls it, in the order
    of prints and callbacks, and what follows waits for it. It must not call CUDA, nor Python. On
    the host the program itself calls it. Not inside branches and loops, whose graphs hold no host
    nodes. Under `vmap` it is called once.

    Args:
        function: a function of a library that `ctypes` has loaded, or another function pointer of
            `ctypes`, of the C type ``void (*)(void *)``.
        user_data: what it gets. Bytes, or what has a buffer of them, are copied: the function gets
            the address of the copy, which lives as long as the graph and is the same in each call.
            An int is passed on as it is; what it points to, the caller keeps. None is a null
            pointer.

    Raises:
        HostCallError: `function` is no C function, or one of Python's or written in Python, which
            would need the GIL in a thread of the driver; or `user_data` is none of these.
        HostCallInBodyError: when the program is compiled: it is inside a branch or a loop.
        EffectInConditionError: it is in the condition of a loop.
    """
    require_allowed("host_call")
    address = _c_function(function)
    argument, data = _user_data(user_data)
    name = getattr(function, "__name__", type(function).__name__)
    made = HostCall(name, address, argument, data, function, user_source())
    trace = current_for(())
    if trace is None:
        ops.CCall.of(made).run()
    else:
        trace.perform(get("host_call"), (), {"call": made})


def _caller(function: Callable[..., Any], given: Tree) -> Callable[..., Sequence[Any]]:
    """A function of the leaves of the arguments, which returns (result,)."""
    structure = given.structure

    def call(*arrays: np.ndarray[Any, Any]) -> Sequence[Any]:
        args: Sequence[Any]
        kwargs: Mapping[str, Any]
        args, kwargs = tree.unflatten(structure, [array[()] for array in arrays])
        return (function(*args, **kwargs),)

    return call


def _require_callable(construct: str, function: object) -> None:
    if not callable(function):
        raise errors.NotCallableError(construct, "function", function)


def _require_seconds(limit: object) -> None:
    if limit is None:
        return
    number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if not number or not limit > 0:  # type: ignore[operator]
        raise errors.CallbackTypesError(
            f"time_limit must be a positive number of seconds or None, not "
            f"{errors.value_text(limit)}"
        )


def _declared(leaf: Any, path: str) -> ArrayType:
    """The type that stands for itself, or that something with a shape and a dtype has."""
    if isinstance(leaf, ArrayType):
        return leaf.strong()
    try:
        return ArrayType(leaf.dtype, tuple(leaf.shape))
    except (AttributeError, TypeError, ValueError) as error:
        reason = "" if isinstance(error, AttributeError) else f" ({error})"
        raise errors.CallbackTypesError(
            f"the type of {path} must be a tracegraph.ArrayType, or have a shape and a dtype; got "
            f"{errors.value_text(leaf)}{reason}"
        ) from None


def _c_function(function: Any) -> int:
    """The address of a C function.

    Raises:
        HostCallError: it is none, or needs the GIL.
    """
    if not isinstance(function, _FUNCTION_POINTER):
        if callable(function):
            raise errors.HostCallError(
                f"{errors.value_text(function)} is a Python function, which a thread of the driver "
                "cannot call; call it by tracegraph.debug.callback"
            )
        raise errors.HostCallError(
            "the function must be a function pointer of ctypes, of the C type void (*)(void *), "
            f"not {errors.value_text(function)}"
        )
    if any(type(kept).__name__ == "CThunkObject" for kept in _kept_by(function)):
        raise errors.HostCallError(
            "the function pointer calls a Python function, which would need the GIL in a thread of "
            "the driver; call that function by tracegraph.debug.callback"
        )
    if type(function)._flags_ & _PYTHON_API:
        raise errors.HostCallError(
            "the function is one of Python's C API, which needs the GIL; a thread of the driver "
            "does not have it"
        )
    if function.argtypes is not None and len(function.argtypes) != 1:
        raise errors.HostCallError(
            "the function must take one argument, a void *, and is declared with "
            f"{len(function.argtypes)}"
        )
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise errors.HostCallError("the function pointer is null")
    return address


def _kept_by(function: Any) -> Sequence[Any]:
    """What a function pointer keeps alive."""
    kept = function._objects
    return tuple(kept.values()) if isinstance(kept, dict) else (kept,)


def _user_data(given: Any) -> tuple[int, bytes | None]:
    """The address that is passed on, or the bytes that a copy of is made."""
    if isinstance(given, Tracer) or callable(given):
        raise errors.HostCallError(
            f"user_data must be bytes, an address or None, not {errors.value_text(given)}; to call "
            "Python with values of the program, use tracegraph.debug.callback"
        )
    if given is None:
        return 0, None
    if isinstance(given, int) and not isinstance(given, bool):
        if not 0 <= given < 2**64:
            raise errors.HostCallError(f"user_data must be an address of 64 bits, not {given}")
        return given, None
    try:
        return 0, memoryview(given).tobytes()
    except TypeError:
        raise errors.HostCallError(
            f"user_data must be bytes, an address or None, not {errors.value_text(given)}"
        ) from None
