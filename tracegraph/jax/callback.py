"""A flat function as a primitive of JAX: a callback on the host, with rules for transformations.

    jvp        the pushforward of the function, a call that is linear in the tangents
    transpose  of such a call, the pullback
    vmap       the function of batches

Each is such a primitive again, so that transformations nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tracegraph import tree
from tracegraph.interop.flat_functions import FlatFunction
from tracegraph.ir.types import ArrayType

_INEXACT = "fcV"  # bfloat16 is of kind V

call = Primitive("tracegraph_call")
"""The results of a function on the host, for arrays and parameters ``function, weak, linear,
transposed``.

`weak` says which arguments are numbers without a dtype. The last `linear` arguments are tangents,
in which the function is linear: `transposed` takes the other arguments and cotangents of the
results, and returns cotangents of these tangents.
"""
call.multiple_results = True


def call_on_host(
    function: FlatFunction, weak: tuple[bool, ...], values: Sequence[Any]
) -> Sequence[Any]:
    """The results of a function for arrays of JAX's, or for what it traces."""
    found: Sequence[Any] = call.bind(
        *values, function=function, weak=weak, linear=0, transposed=None
    )
    return found


def canonical(dtype: Any) -> np.dtype[Any]:
    """The dtype that JAX has for one: it has 64 bits only if it is told so."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def is_weak(x: Any) -> bool:
    """Whether a value is a number without a dtype of its own, in JAX or as Python's."""
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return True
    return bool(getattr(x, "weak_type", False)) and np.ndim(x) == 0


def result_structure(
    function: FlatFunction, weak: tuple[bool, ...], values: Sequence[Any]
) -> tree.Structure:
    """The structure of the results of a function for arrays of JAX's, or for what it traces."""
    return function.results(_types(weak, map(_array, values)))[1]


def _types(weak: tuple[bool, ...], values: Iterable[Any]) -> list[ArrayType]:
    return [ArrayType(x.dtype, x.shape, w) for x, w in zip(values, weak, strict=True)]


def _results(function: FlatFunction, weak: tuple[bool, ...], values: Sequence[Any]) -> list[Any]:
    """The types of the results, as JAX has them."""
    found, _ = function.results(_types(weak, values))
    return [jax.ShapeDtypeStruct(t.shape, canonical(t.dtype)) for t in found]


def _abstract(*values: Any, function: FlatFunction, weak: tuple[bool, ...], **_: Any) -> list[Any]:
    results = _results(function, weak, values)
    return [jax.core.ShapedArray(each.shape, each.dtype) for each in results]


def _called_back(
    *values: Any, function: FlatFunction, weak: tuple[bool, ...], **_: Any
) -> Sequence[Any]:
    given = [jax.numpy.asarray(x) for x in values]
    results = _results(function, weak, given)

    def run(*arrays: Any) -> tuple[Any, ...]:
        pairs = zip(arrays, weak, strict=True)
        made = function.on("host")(*[x.item() if w else np.asarray(x) for x, w in pairs])
        found = tree.leaves(made)
        return tuple([np.asarray(x, r.dtype) for x, r in zip(found, results, strict=True)])

    found: Sequence[Any] = jax.pure_callback(run, tuple(results), *given)
    return found


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    function: FlatFunction,
    weak: tuple[bool, ...],
    linear: int,
    transposed: FlatFunction | None,
) -> tuple[Sequence[Any], Sequence[Any]]:
    rule = {"function": function, "weak": weak, "linear": linear, "transposed": transposed}
    outs = call.bind(*primals, **rule)
    moving = tuple(
        [
            type(t) is not ad.Zero and np.dtype(x.dtype).kind in _INEXACT
            for x, t in zip(map(_array, primals), tangents, strict=True)
        ]
    )
    live = tuple([np.dtype(out.dtype).kind in _INEXACT for out in outs])
    zeros = [
        ad.Zero(jax.core.ShapedArray(out.shape, out.dtype if is_live else jax.dtypes.float0))
        for out, is_live in zip(outs, live, strict=True)
    ]
    if not any(moving) or not any(live):
        return outs, zeros
    fixed = len(primals) - linear
    if linear and not any(moving[:fixed]):  # tangents of tangents: it is linear in them
        given = list(map(ad.instantiate_zeros, tangents[fixed:]))
        return outs, call.bind(*primals[:fixed], *given, **rule)
    given = [t for t, moves in zip(tangents, moving, strict=True) if moves]
    found = iter(
        call.bind(
            *primals,
            *given,
            function=function.pushforward(moving, live),
            weak=weak + (False,) * len(given),
            linear=len(given),
            transposed=function.pullback(moving, live),
        )
    )
    return outs, [next(found) if is_live else z for z, is_live in zip(zeros, live, strict=True)]


def _array(x: Any) -> Any:
    return x if hasattr(x, "dtype") else jax.numpy.asarray(x)


def _transpose(
    cotangents: Sequence[Any],
    *values: Any,
    function: FlatFunction,
    weak: tuple[bool, ...],
    linear: int,
    transposed: FlatFunction | None,
) -> list[Any]:
    fixed = len(values) - linear
    if transposed is None or any(map(ad.is_undefined_primal, values[:fixed])):
        name = getattr(function.function, "__name__", "function")
        raise TypeError(
            f"{name}, of tracegraph.jax.wrap, is not known to be linear, so that jax cannot "
            "transpose it; jax.vjp and jax.grad take it"
        )
    given = list(map(ad.instantiate_zeros, cotangents))
    found = call_on_host(
        transposed, weak[:fixed] + (False,) * len(given), [*values[:fixed], *given]
    )
    pairs = zip(values[fixed:], found, strict=True)
    return [None] * fixed + [ct if ad.is_undefined_primal(x) else None for x, ct in pairs]


def _batch(
    values: Sequence[Any],
    dims: Sequence[int | None],
    *,
    function: FlatFunction,
    weak: tuple[bool, ...],
    linear: int,
    transposed: FlatFunction | None,
) -> tuple[Sequence[Any], list[int]]:
    fixed, given = len(values) - linear, list(map(_array, values))
    count = next(x.shape[d] for x, d in zip(values, dims, strict=True) if d is not None)
    moved, axes = [], list[int | None]()
    for number, (x, dim) in enumerate(zip(given, dims, strict=True)):
        if dim is not None:
            moved.append(jax.numpy.moveaxis(x, dim, 0))
        elif number < fixed:
            moved.append(x)
        else:  # so that cotangents are batched, too
            moved.append(jax.numpy.broadcast_to(x, (count, *np.shape(x))))
        axes.append(None if dim is None and number < fixed else 0)
    if transposed is not None:
        one = [
            x if dim is None else jax.ShapeDtypeStruct(np.delete(x.shape, dim), x.dtype)
            for x, dim in zip(given, dims, strict=True)
        ]
        results = (0,) * len(_results(function, weak, one))
        transposed = transposed.batched((*axes[:fixed], *results))
    found = call.bind(
        *moved,
        function=function.batched(tuple(axes)),
        weak=tuple([w and axis is None for w, axis in zip(weak, axes, strict=True)]),
        linear=linear,
        transposed=transposed,
    )
    return found, [0] * len(found)


call.def_impl(_called_back)
call.def_abstract_eval(_abstract)
mlir.register_lowering(call, mlir.lower_fun(_called_back, multiple_results=True))
ad.primitive_jvps[call] = _jvp
ad.primitive_transposes[call] = _transpose
batching.primitive_batchers[call] = _batch
