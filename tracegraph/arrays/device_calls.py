"""Compiled calls: how eager ops and copies run on a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tracegraph.tracing.function_table import FUNCTIONS


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs on the device of its arguments, even while another is traced."""
    call: Callable[..., Any] = FUNCTIONS["jit"](function).launch
    return call


def copy(x: Any, device: str | None, *, donate: bool) -> Any:
    """An Array of the elements of `x`, on a device, or else where they are.

    A donated Array gives up its memory. Donated memory that does not belong to tracegraph is copied
    as well, straight to where the result is.
    """
    return _copier(device, donate)(x)


def _identity(x: Any) -> Any:
    return x


@lru_cache(maxsize=64)
def _copier(device: str | None, donate: bool) -> Callable[..., Any]:
    """The identity, compiled: outputs never alias inputs, so it is a copy."""
    donated = 0 if donate else ()
    call: Callable[..., Any]
    call = FUNCTIONS["jit"](_identity, donate_argnums=donated, device=device).launch
    return call
