"""How rows run tracegraph, NumPy and JAX, each by the same program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph

from .python_loops import python_loops
from .row import Prepare

Write = Callable[[Any, Any], Callable[..., Any]]
"""Makes a function of an array namespace and of loops, as tracegraph and `jax.lax` spell them."""


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


def compiled_jax(write: Write) -> Prepare:
    """What is written with JAX's arrays and loops, compiled."""

    def prepare(*inputs: Any) -> Callable[[], Any]:
        import jax

        return functools.partial(jax.jit(write(jax.numpy, jax.lax)), *inputs)

    return prepare


def written_once(write: Write) -> dict[str, Prepare]:
    """Contestants of one program: tracegraph, NumPy with loops in Python, and JAX."""
    return {
        "tracegraph": jitted(write(np, tracegraph)),
        "numpy": eager(write(np, python_loops(np))),
        "jax": compiled_jax(write),
    }
