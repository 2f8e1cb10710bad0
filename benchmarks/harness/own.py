"""How rows run tracegraph and NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tracegraph

from .row import Prepare


def jitted(function: Callable[..., Any]) -> Prepare:
    """`function` compiled by tracegraph, as its users do: one call, nothing else."""

    def prepare(*inputs: Any) -> Callable[[], Any]:
        return functools.partial(tracegraph.jit(function), *inputs)

    return prepare


def eager(function: Callable[..., Any]) -> Prepare:
    """`function` as it is, called with NumPy arrays."""

    def prepare(*inputs: Any) -> Callable[[], Any]:
        return functools.partial(function, *inputs)

    return prepare
