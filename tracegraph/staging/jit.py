"""jit: functions of arrays as graphs; and `make_program`, which only traces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, overload

from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.program import Program
from tracegraph.staging.builds import MOST_BUILDS
from tracegraph.staging.calls.call_tracing import trace_call
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.compiler import default_device
from tracegraph.staging.jitted import Jitted
from tracegraph.staging.scratch import Scratch, checked
from tracegraph.tracing.function_table import FUNCTIONS

__all__ = ["jit", "make_program"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
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
        TypeError: `fun` is not callable, or `max_builds` no integer.
        ValueError: an option names no parameter, one is both static and donated, `scratch` is
            something else, or `max_builds` less than 1.

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
            device=device,
            scratch=scratch,
            max_builds=max_builds,
        )
    if isinstance(fun, (staticmethod, classmethod)):
        raise TypeError(f"apply jit below @{type(fun).__name__}, to the function itself")
    signature = Signature.of(fun, static_argnums, static_argnames, donate_argnums)
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


def make_program(fun: Callable[..., Any]) -> Callable[..., Program]:
    """A function that traces `fun` and returns the Program, before any pass.

    Arguments are arrays, numbers or `ArrayType`s, and trees of them.

    >>> import tracegraph
    >>> print(make_program(lambda x: x + 1)(tracegraph.ArrayType("int64")).out_types[0])
    i64[]
    """
    signature = Signature.of(fun)

    @entry_point
    @functools.wraps(fun)
    def program(*args: Any, **kwargs: Any) -> Program:
        key = signature.bind(args, kwargs, abstract=True).key
        return trace_call(fun, signature, key, "host").program

    return program


FUNCTIONS["jit"] = jit
FUNCTIONS["default_device"] = default_device
