"""Calls of the host from a running program: `debug.callback`, `pure_callback` and `host_call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from tracegraph import c_functions, errors, tree
from tracegraph.control.regions import Tree, current_for, flatten_checked
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.callbacks import HostCall, HostFunction, VmapMethod
from tracegraph.ir.effects import require_allowed
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType
from tracegraph.ops import callbacks as ops
from tracegraph.staging.compiler import compiler
from tracegraph.user_source import user_source

__all__ = ["host_call", "pure_callback"]


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
        NotCallableError: `function` is not callable.
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
    are not used. A device waits for the answer. On the host the program itself makes the calls; on
    a device, a thread of this package. What the function
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
        NotCallableError: `function` is not callable.
        CallbackTypesError: `result_types` has something other than types, or `vmap_method` is none
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
    arguments = flatten_checked((args, kwargs), "pure_callback", "arguments")
    leaves, structure = tree.flatten(result_types)
    paths = tuple(tree.paths(structure, "result"))
    types = tuple(map(_declared, leaves, paths))
    name = errors.function_text(function)

    def call(*arrays: np.ndarray[Any, Any]) -> Sequence[Any]:
        returned, found = tree.flatten(_caller(function, arguments)(*arrays)[0])
        if found != structure:
            got, wanted = map(errors.structure_text, (found, structure))
            raise errors.CallbackStructureError(name, got, wanted)
        return returned

    made = HostFunction(name, call, types, paths, vmap_method, time_limit, user_source())
    trace = current_for(arguments.leaves)
    if trace is None:
        results: Sequence[Any] = ops.answer(made, [np.asarray(leaf) for leaf in arguments.leaves])
    else:
        atoms = [trace.read(leaf) for leaf in arguments.leaves]
        results = trace.record(get("pure_callback"), atoms, {"callback": made})
    return tree.unflatten(structure, results)


@entry_point
def host_call(function: Any, /, user_data: Any = None) -> None:
    """Call a C function each time that a running program reaches this line.

    On a device it becomes a host node of the graph: a thread of the driver calls it. It must not
    call CUDA, nor Python. On the host the program itself calls it. Not inside branches and loops,
    whose graphs hold no host nodes. Under `vmap` it is called once.

    It has its place among all that the program computes: what stands before it is done, and what
    follows waits for it. So it may read and write memory of `tracegraph.owned` that the program is
    given: what is computed before the call is computed of what the memory had then, and what
    follows reads it again.

    Args:
        function: a function of a library that `ctypes` has loaded, or another function pointer of
            `ctypes`, of the C type ``void (*)(void *)``. If `argtypes` and `restype` are declared,
            they must be that: a pointer, and None. An integer or pointer that it returns is not
            used.
        user_data: what it gets. Bytes, or what has a buffer of them, are copied: the function gets
            the address of the copy, which lives as long as the graph and is the same in each call.
            A pointer of `ctypes`, such as ``ctypes.pointer(x)`` or a ``c_void_p``, is passed on,
            and lives as long as the graph. So is an int; what it points to, the caller keeps. None
            is a null pointer.

    Raises:
        HostCallError: `function` is not a C function, or declared with other types, or one of
            Python's or written in Python, which would need the GIL in a thread of the driver; or
            `user_data` is none of these.
        HostCallInBodyError: when the program is compiled: it is inside a branch or a loop.
        EffectInConditionError: it is in the condition of a loop.

    >>> import ctypes
    >>> import tracegraph
    >>> libc = ctypes.CDLL(None)
    >>> @tracegraph.jit(device="host")
    ... def doubled(x):
    ...     tracegraph.host_call(libc.free)  # of a null pointer: does nothing
    ...     return 2 * x
    >>> doubled(3)
    Array(6, dtype=int64)
    """
    require_allowed("host_call")
    address = c_functions.c_function(function)
    argument, data, owner = c_functions.user_data(user_data)
    name = getattr(function, "__name__", type(function).__name__)
    made = HostCall(name, address, argument, data, (function, owner), user_source())
    trace = current_for(())
    if trace is None:
        compiler().synchronize()  # what stands before it may still run on a device
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
