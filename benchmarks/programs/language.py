"""Language: the array namespace, loops and indexed updates of a library, under one spelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.python_loops import python_loops


@dataclass(frozen=True)
class Language:
    """What a program is written in.

    `xp` has NumPy's functions, with axes as positional arguments or `axis=`. `loops` has
    `while_loop`, `fori_loop` and `scan`, as `tracegraph` and `jax.lax` spell them. The functions
    that make arrays take the dtype, and the device, of `like`. `set_at` and `add_at` return an
    updated copy; `add_at` adds repeated indices up. `bounded_loop(unfinished, step, state, n)` is a
    `while_loop` of at most n steps; through `reversible_loop`, the same, gradients are taken, too.
    `transforms` has `value_and_grad`, `jvp` and others; it is None where there are none.
    """

    xp: Any
    loops: Any
    scalar: Callable[[float, Any], Any]
    arange: Callable[[int, Any], Any]
    zeros: Callable[[Any, Any], Any]
    set_at: Callable[[Any, Any, Any], Any]
    add_at: Callable[[Any, Any, Any], Any]
    bounded_loop: Callable[[Any, Any, Any, int], Any]
    reversible_loop: Callable[[Any, Any, Any, int], Any]
    transforms: Any = None


def traced() -> Language:
    """NumPy, as tracegraph traces it, with tracegraph's loops and transforms."""

    def bounded_loop(unfinished: Any, step: Any, state: Any, n: int) -> Any:
        return tracegraph.while_loop(unfinished, step, state, max_steps=n)

    return _of_module(np, tracegraph, bounded_loop, tracegraph)


def eager(xp: ModuleType) -> Language:
    """NumPy or CuPy, with loops in Python."""
    loops = python_loops(xp)
    return _of_module(xp, loops, _bounded_in_python(loops))


def _bounded_in_python(loops: Any) -> Callable[[Any, Any, Any, int], Any]:
    """A loop that ends by itself before n steps."""
    return lambda unfinished, step, state, n: loops.while_loop(unfinished, step, state)


def _of_module(xp: ModuleType, loops: Any, bounded_loop: Any, transforms: Any = None) -> Language:
    return Language(
        xp,
        loops,
        scalar=lambda value, like: xp.asarray(value, dtype=like.dtype),
        arange=lambda count, like: xp.arange(count, dtype=like.dtype),
        zeros=lambda shape, like: xp.zeros_like(like, shape=shape),
        set_at=_set_in_copy,
        add_at=partial(_add_in_copy, xp),
        bounded_loop=bounded_loop,
        reversible_loop=bounded_loop,
        transforms=transforms,
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
    """JAX, with its own loops and transforms.

    Its `while_loop` has no reverse mode. A scan of n steps has, with a `cond` around each: a
    `where` would be undone by derivatives of steps after the end that are not finite.
    """
    import jax
    from jax import lax
    from jax import numpy as jnp

    def reversible_loop(unfinished: Any, step: Any, state: Any, n: int) -> Any:
        def step_or_stay(state: Any, _: Any) -> Any:
            return lax.cond(unfinished(state), step, lambda state: state, state), None

        return lax.scan(step_or_stay, state, length=n)[0]

    return Language(
        jnp,
        lax,
        scalar=lambda value, like: jnp.asarray(value, like.dtype),
        arange=lambda count, like: jnp.arange(count, dtype=like.dtype),
        zeros=lambda shape, like: jnp.zeros(shape, like.dtype),
        set_at=lambda x, index, value: x.at[index].set(value),
        add_at=lambda x, index, value: x.at[index].add(value),
        bounded_loop=lambda unfinished, step, state, n: lax.while_loop(unfinished, step, state),
        reversible_loop=reversible_loop,
        transforms=jax,
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

    loops = python_loops(torch)
    return Language(
        torch,
        loops,
        scalar=like(torch.tensor),
        arange=like(torch.arange),
        zeros=like(torch.zeros),
        set_at=set_at,
        add_at=lambda x, index, value: x.index_add(0, index, value),
        bounded_loop=_bounded_in_python(loops),
        reversible_loop=_bounded_in_python(loops),
    )
