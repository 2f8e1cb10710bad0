"""A flat function as a function of JAX: a callback on the host, with rules for derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from tracegraph.interop.flat_functions import FlatFunction
from tracegraph.ir.types import ArrayType

_INEXACT = "fcV"  # bfloat16 is of kind V

JaxFunction = Callable[..., tuple[Any, ...]]


def jax_function(function: FlatFunction, weak: tuple[bool, ...]) -> JaxFunction:
    """The function of JAX's arrays. `weak` says which arguments are numbers, without a dtype."""
    found: JaxFunction | None = function.elsewhere.get(weak)
    if found is None:
        found = function.elsewhere.setdefault(weak, _jax_function(function, weak))
    return found


def _jax_function(function: FlatFunction, weak: tuple[bool, ...]) -> JaxFunction:
    @jax.custom_vjp
    def called(*values: Any) -> tuple[Any, ...]:
        types = [type_of_value(x, w) for x, w in zip(values, weak, strict=True)]
        dtypes = [canonical(t) for t in function.result_types(types)]
        out = [
            jax.ShapeDtypeStruct(t.shape, dtype)
            for t, dtype in zip(function.result_types(types), dtypes, strict=True)
        ]

        def run(*arrays: Any) -> tuple[Any, ...]:
            found = run_lanes(function, types, arrays)
            return tuple([np.asarray(x, dtype) for x, dtype in zip(found, dtypes, strict=True)])

        return tuple(jax.pure_callback(run, tuple(out), *values, vmap_method="expand_dims"))

    def forward(*values: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return called(*values), values

    def backward(values: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        needed = tuple([jax.numpy.result_type(x).kind in _INEXACT for x in values])
        differentiable = tuple([c.dtype != jax.dtypes.float0 for c in cotangents])
        given = [c for c, d in zip(cotangents, differentiable, strict=True) if d]
        pullback = function.pullback(needed, differentiable)
        found = iter(jax_function(pullback, weak + (False,) * len(given))(*values, *given))
        return tuple([next(found) if need else None for need in needed])

    called.defvjp(forward, backward)
    found: JaxFunction = called
    return found


def type_of_value(x: Any, weak: bool) -> ArrayType:
    """The type of an array of JAX's, or of a number."""
    return ArrayType(jax.numpy.result_type(x), np.shape(x), weak)


def canonical(type_: ArrayType) -> np.dtype[Any]:
    """The dtype of a result in JAX, which has 64 bits only if it is told so."""
    return np.dtype(jax.dtypes.canonicalize_dtype(type_.dtype))


def run_lanes(
    function: FlatFunction, types: Sequence[ArrayType], arrays: Sequence[Any]
) -> tuple[Any, ...]:
    """The results on the host. Axes in front of those of the types are lanes, of `jax.vmap`; an
    argument with one lane along such an axis has the same in all.
    """
    values = [np.asarray(x) for x in arrays]
    lanes = values[0].ndim - types[0].ndim if values else 0
    for axis in reversed(range(lanes)):
        several = [x.shape[axis] > 1 for x in values]
        if not any(several):
            function = function.batched((0,) * len(values))
            continue
        function = function.batched(tuple([0 if s else None for s in several]))
        values = [x if s else x.squeeze(axis) for x, s in zip(values, several, strict=True)]
    if not lanes:  # numbers are passed as numbers
        values = [x.item() if t.weak else x for x, t in zip(values, types, strict=True)]
    return function.on("host")(*values)
