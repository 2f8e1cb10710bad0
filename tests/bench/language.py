"""Language: the array namespace, loops and indexed updates of a library, under one spelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import tracegraph


@dataclass(frozen=True)
class Language:
    """What a program is written in.

    `xp` has NumPy's functions, with axes as positional arguments or `axis=`. `loops` has
    `while_loop`, `fori_loop` and `scan`, as `tracegraph` and `jax.lax` spell them. The functions
    that make arrays take the dtype, and the device, of `like`. `set_at` and `add_at` return an
    updated copy; `add_at` adds repeated indices up.
    """

    xp: Any
    loops: Any
    scalar: Callable[[float, Any], Any]
    arange: Callable[[int, Any], Any]
    zeros: Callable[[Any, Any], Any]
    set_at: Callable[[Any, Any, Any], Any]
    add_at: Callable[[Any, Any, Any], Any]


def traced() -> Language:
    """NumPy, as tracegraph traces it, with tracegraph's loops."""
    return _of_module(np, tracegraph)


def eager(xp: ModuleType) -> Language:
    """NumPy or CuPy, with loops in Python."""
    return _of_module(xp, _python_loops(xp))


def _of_module(xp: ModuleType, loops: Any) -> Language:
    return Language(
        xp,
        loops,
        scalar=lambda value, like: xp.asarray(value, dtype=like.dtype),
        arange=lambda count, like: xp.arange(count, dtype=like.dtype),
        zeros=lambda shape, like: xp.zeros_like(like, shape=shape),
        set_at=_set_in_copy,
        add_at=partial(_add_in_copy, xp),
    )


def _set_in_copy(x: Any, index: Any, value: Any) -> Any:
    x = x.copy()
    x[index] = value
    return x


def _add_in_copy(xp: Any, x: Any, index: Any, value: Any) -> Any:
    x = x.copy()
    xp.add.at(x, index, value)
    return x


def jax() -> Language:
    """JAX, with its own loops."""
    import jax
    from jax import numpy as jnp

    return Language(
        jnp,
        jax.lax,
        scalar=lambda value, like: jnp.asarray(value, like.dtype),
        arange=lambda count, like: jnp.arange(count, dtype=like.dtype),
        zeros=lambda shape, like: jnp.zeros(shape, like.dtype),
        set_at=lambda x, index, value: x.at[index].set(value),
        add_at=lambda x, index, value: x.at[index].add(value),
    )


def torch() -> Language:
    """PyTorch as it is, with loops in Python."""
    import torch

    def set_at(x: Any, index: Any, value: Any) -> Any:
        x = x.clone()
        x[index] = value
        return x

    def like(make: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda what, like: make(what, dtype=like.dtype, device=like.device)

    return Language(
        torch,
        _python_loops(torch),
        scalar=like(torch.tensor),
        arange=like(torch.arange),
        zeros=like(torch.zeros),
        set_at=set_at,
        add_at=lambda x, index, value: x.index_add(0, index, value),
    )


def _python_loops(xp: Any) -> SimpleNamespace:
    def while_loop(unfinished: Any, step: Any, state: Any) -> Any:
        while unfinished(state):
            state = step(state)
        return state

    def fori_loop(start: int, stop: int, step: Any, state: Any) -> Any:
        for i in range(start, stop):
            state = step(i, state)
        return state

    def scan(step: Any, carry: Any, xs: Any) -> Any:
        rows = zip(*xs, strict=True) if isinstance(xs, tuple) else xs
        outputs = []
        for row in rows:
            carry, output = step(carry, row)
            outputs.append(output)
        return carry, xp.stack(outputs)

    return SimpleNamespace(while_loop=while_loop, fori_loop=fori_loop, scan=scan)
