"""Compiled calls: how eager ops and copies run on a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tracegraph.ir.op import Op
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.trace import bind, recorder


def compiled(function: Callable[..., Any], *, donate: bool = False) -> Callable[..., Any]:
    """A function that runs on the device of its arguments, even while another is traced.

    It takes over the memory of the first, if that is donated.
    """
    donated = 0 if donate else ()
    call: Callable[..., Any] = FUNCTIONS["jit"](function, donate_argnums=donated).launch
    return call


@lru_cache(maxsize=4096)
def compiled_op(op: Op, attrs: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """A program of one op, with these attributes."""
    keywords = dict(attrs)

    def traced(*args: Any) -> Any:
        trace = recorder(args)
        assert trace is not None
        return bind(trace, op, args, dict(keywords))

    traced.__name__ = traced.__qualname__ = op.name
    return compiled(traced)


def copy(x: Any, device: str | None, *, donate: bool) -> Any:
    """An Array of the elements of `x`, on a device, or else where they are.

    A donated Array gives up its memory. Donated memory that does not belong to tracegraph is copied
    as well, straight to where the result is.
    """
    return _copier(device, donate)(x)


def _identity(x: Any) -> Any:
    return x


_identity.__qualname__ = "copy"  # in messages


@lru_cache(maxsize=64)
def _copier(device: str | None, donate: bool) -> Callable[..., Any]:
    """The identity, compiled: outputs never alias inputs, so it is a copy."""
    donated = 0 if donate else ()
    call: Callable[..., Any]
    call = FUNCTIONS["jit"](_identity, donate_argnums=donated, device=device).launch
    return call
