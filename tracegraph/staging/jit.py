"""jit: functions of arrays as graphs; and `make_program`, which only traces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, overload

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.program import Program
from tracegraph.sharding.shard import ShardedFunction
from tracegraph.staging.builds import MOST_BUILDS
from tracegraph.staging.calls.call_tracing import trace_call
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.compiler import default_device
from tracegraph.staging.jitted import Jitted
from tracegraph.staging.scratch import Scratch, checked
from tracegraph.staging.stages import flat_results
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.trace import current_trace, trace_region
from tracegraph.tracing.tracer import Tracer

__all__ = ["eval_shape", "jit", "make_program"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    device: str | None = None,
    scratch: Scratch = "kept",
    max_builds: int | None = MOST_BUILDS,
) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    device: str | None = None,
    scratch: Scratch = "kept",
    max_builds: int | None = MOST_BUILDS,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@entry_point
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    device: str | None = None,
    scratch: Scratch = "kept",
    max_builds: int | None = MOST_BUILDS,
) -> Any:
    """Compile a pure function of arrays into one graph, on its first call with given types.

    Args:
        fun: takes and returns trees of arrays and numbers. Without it, `jit` with options is a
            decorator.
        static_argnums: positions of arguments that are not traced, but hashable values that the
            program depends on; each new value is traced and compiled again.
        static_argnames: the same by name.
        donate_argnums: positions of arguments that may be overwritten; their Arrays are invalid
            after the call, and results use their memory where that is possible.
        donate_argnames: the same by name.
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, that of the Arrays passed, or
            else a GPU if there is one.
        scratch: memory for intermediate results. ``"kept"``: it is held between calls; on a GPU,
            all functions on a stream share it. ``"per_launch"``: each launch allocates it and frees
            it at its end, so that an idle function holds none.
        max_builds: how many programs are kept, each for a combination of argument types and static
            values; beyond that, the least recently used is dropped, and traced again if it is
            called again. None for no limit.

    A `RetraceWarning` at the 64th program says which argument keeps changing.

    Raises:
        TypeError: `fun` is not callable, or an option is of another type.
        ValueError: an option names no parameter, one is both static and donated, there is no such
            device, `scratch` is something else, or `max_builds` less than 1.

    >>> import numpy as np
    >>> @jit
    ... def scale(x, factor):
    ...     return x * factor
    >>> scale(np.arange(3.0), 2)
    Array([0., 2., 4.], dtype=float64)
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            device=device,
            scratch=scratch,
            max_builds=max_builds,
        )
    if isinstance(fun, ShardedFunction):
        if device is not None:
            raise errors.ShardingError(
                "jit of a sharded function takes no device, as its mesh has the devices"
            )
        device = fun.mesh.device
    if isinstance(fun, (staticmethod, classmethod)):
        raise TypeError(f"apply jit below @{type(fun).__name__}, to the function itself")
    signature = Signature.of(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    return Jitted(fun, signature, device, checked(scratch), _limit(max_builds))


def _limit(max_builds: int | None) -> int | None:
    if max_builds is None:
        return None
    if isinstance(max_builds, bool) or not isinstance(max_builds, int):
        raise TypeError(
            f"max_builds is a number of programs to keep, or None for no limit, got {max_builds!r}"
        )
    if max_builds < 1:
        raise ValueError(f"max_builds is at least 1, got {max_builds}: a call needs its program")
    return max_builds


@entry_point
def make_program(fun: Callable[..., Any]) -> Callable[..., Program]:
    """A function that traces `fun` and returns the Program, before any pass.

    Arguments are arrays, numbers or `ArrayType`s, and trees of them.

    >>> import tracegraph
    >>> print(make_program(lambda x: x + 1)(tracegraph.ArrayType("int64")).out_types[0])
    i64[]
    """
    signature = Signature.of(fun, taken_by="make_program")

    @entry_point
    @functools.wraps(fun)
    def program(*args: Any, **kwargs: Any) -> Program:
        key = signature.bind(args, kwargs, abstract=True).key
        return trace_call(fun, signature, key, "host").program

    return program


@entry_point
def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What `fun` returns for these arguments, with a type in the place of each array.

    It is traced, and nothing is computed. Arguments are arrays, numbers or `ArrayType`s, and trees
    of them; an `ArrayType` is what `ShapeDtypeStruct` is in JAX. While another function is traced,
    they may be traced values, and `fun` may use some.

    Args:
        fun: takes and returns trees of arrays and numbers.
        *args: its arguments.
        **kwargs: its arguments by name.

    Raises:
        TypeError: `fun` is not callable.
        UnsupportedArgumentError: an argument has a leaf that is not an array, number or type.
        UnsupportedResultError: what `fun` returns has a leaf that is not an array or a number.

    >>> import numpy as np
    >>> import tracegraph
    >>> large = tracegraph.ArrayType("float32", (100_000, 100_000))
    >>> found = eval_shape(lambda x: {"rows": np.sum(x, 1), "count": x.size}, large)
    >>> print(found["rows"], found["rows"].shape, found["rows"].dtype)
    f32[100000] (100000,) float32
    """
    signature = Signature.of(fun, taken_by="eval_shape")
    args, kwargs = tree.map(_without_value, (args, kwargs))
    key = signature.bind(args, kwargs, abstract=True).key
    trace = current_trace()
    if trace is None:
        traced = trace_call(fun, signature, key, "host")
        return tree.unflatten(traced.out_structure, traced.program.out_types)
    structures = list[tree.Structure]()

    def flat(*leaves: Tracer) -> list[Any]:  # it may use values of the function around
        given, named = signature.rebuild(key, leaves)
        results, structure = flat_results(signature.function, fun(*given, **named))
        structures.append(structure)
        return results

    region = trace_region(flat, signature.types(key), trace)[0]
    return tree.unflatten(structures[0], region.result_types)


def _without_value(leaf: Any) -> Any:
    """The type of a traced value, and anything else as it is."""
    return leaf.type if isinstance(leaf, Tracer) else leaf


FUNCTIONS["jit"] = jit
FUNCTIONS["default_device"] = default_device
