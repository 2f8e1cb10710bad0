"""Forward mode: jvp and linearize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracegraph import errors, tree
from tracegraph.arrays.eager import apply
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.op import get
from tracegraph.ir.types import type_of
from tracegraph.tracing.trace import Trace
from tracegraph.transforms.derivatives import user_rules as _user_rules  # noqa: F401 - enters its rule
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.linear_functions import LinearForm, LinearFunction
from tracegraph.transforms.derivatives.tangents import matched
from tracegraph.transforms.trace_emitter import plain
from tracegraph.transforms.transformed_calls import (
    LinearMap,
    TransformCall,
    dense_inexact,
    linearized,
    recorded_values,
    split_aux,
)

__all__ = ["jvp", "linearize", "stop_gradient"]


@entry_point
def stop_gradient(x: Any) -> Any:
    """`x` itself, as a constant to derivatives.

    Args:
        x: a pytree of arrays and numbers; shapes and dtypes stay as they are.

    >>> import tracegraph
    >>> tracegraph.grad(lambda x: x * stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return tree.map(_stopped, x)


def _stopped(leaf: Any) -> Any:
    return apply(get("stop_gradient"), leaf) if is_inexact(type_of(leaf)) else leaf


@entry_point
@errors.refuses(argnums="jvp takes a tangent for each argument: give None where it is zero")
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The result of a function, and its derivative in a direction: Jacobian times vector.

    Args:
        fun: a function of pytrees of arrays.
        primals: its arguments, a tuple or list.
        tangents: the direction: for each argument a tree of its structure, shapes and dtypes. In
            place of a tangent that is zero, None is allowed; integers and bools have no others.
        has_aux: `fun` returns a pair, and only the first part is differentiated.

    Returns:
        The result and its tangent, of the same structure, and aux if there is one. The tangent of
        an integer is None.

    Raises:
        TransformError: `primals` and `tangents` differ in structure, or are no tuples.
        TangentMismatchError: a tangent has another shape, or a dtype that does not convert.
        DerivativeError: an op has no derivative.

    >>> import numpy as np
    >>> jvp(np.sin, (0.0,), (2.0,))
    (np.float64(0.0), np.float64(2.0))
    """
    for name, entries in (("primals", primals), ("tangents", tangents)):
        if not isinstance(entries, (tuple, list)):
            raise errors.TransformError(
                "jvp",
                f"{name} must be a tuple with an entry for each argument, not "
                f"{errors.value_text(entries)}; write (x,) for one",
            )
    primals, tangents = tuple(primals), tuple(tangents)
    call = TransformCall("jvp", fun, primals, {}, range(len(primals)))
    structure = tree.structure(primals)

    def of() -> str:
        return f"the arguments of {errors.function_text(fun)}"

    known = matched("jvp", "tangents", of, structure, call.types, tangents, call.paths)
    places = [i for i, t in enumerate(known) if t is not None]
    parts: list[Any] = []

    def record(trace: Trace, leaves: Sequence[Any]) -> Sequence[Any]:
        run = split_aux("jvp", fun, call.run) if has_aux else call.run
        traced = call.trace("jvp", trace, run)
        values = leaves[: call.count]
        directions: list[Any] = [None] * call.count
        for i, t in zip(places, leaves[call.count :], strict=True):
            directions[i] = plain(trace, t)
        out, aux = _split(traced.result.structure, has_aux)
        count = out.num_leaves
        outs, out_tangents = traced.run(trace, trace, values, directions, count)
        parts[:] = [out, aux, len(outs)]
        return [*outs, *dense_inexact(trace, traced.types[:count], out_tangents)]

    leaves = [*call.leaves, *(known[i] for i in places)]
    values = recorded_values("jvp", leaves, record)
    out, aux, total = parts
    dense = iter(values[total:])
    tangent = [next(dense) if is_inexact(type_of(v)) else None for v in values[: out.num_leaves]]
    results = tree.unflatten(out, values[: out.num_leaves]), tree.unflatten(out, tangent)
    if not has_aux:
        return results
    return (*results, tree.unflatten(aux, values[out.num_leaves : total]))


def _split(structure: tree.Structure, has_aux: bool) -> tuple[tree.Structure, tree.Structure]:
    """The structures of the result and of aux."""
    if not has_aux:
        return structure, tree.structure(())
    out, aux = structure.children()
    return out, aux


@entry_point
@errors.refuses(
    argnums="linearize differentiates by all arguments: bind others by a lambda, or give None for "
    "their tangents"
)
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and its derivative there as a function of tangents.

    The function itself runs once; what its derivative needs of it is kept. Only a loop of unknown
    length cannot keep its steps: it runs again, along with its tangents, for each call of the
    derivative; `max_steps` bounds it, and then they are kept.

    Args:
        fun: a function of pytrees of arrays.
        *primals: its arguments.
        has_aux: as in `jvp`.

    Returns:
        The result; the linear function that takes a tangent for each argument and returns that of
        the result, as `jvp` does; and aux if there is one. The linear function is a tree of what it
        keeps: jitted functions, loops and branches take and return it.

    Raises:
        DerivativeError: an op has no derivative.

    >>> import numpy as np
    >>> y, derivative = linearize(np.square, 3.0)
    >>> derivative(1.0)
    np.float64(6.0)
    """
    call = TransformCall("linearize", fun, primals, {}, range(len(primals)))
    out, values, linear, aux = linearized_call("linearize", fun, call, has_aux)
    derivative = LinearFunction(LinearForm(call, linear, out, values), linear.residuals)
    results = tree.unflatten(out, values), derivative
    return (*results, aux) if has_aux else results


def linearized_call(
    transform: str, fun: Callable[..., Any], call: TransformCall, has_aux: bool
) -> tuple[tree.Structure, list[Any], LinearMap, Any]:
    """The structure and leaves of a call's result, the linear map of its tangents, and aux."""
    parts: list[Any] = []

    def record(trace: Trace, leaves: Sequence[Any]) -> Sequence[Any]:
        run = split_aux(transform, fun, call.run) if has_aux else call.run
        traced = call.trace(transform, trace, run)
        out, aux = _split(traced.result.structure, has_aux)
        active = [is_inexact(t) for t in call.types[: call.count]]
        active += [False] * (len(call.types) - call.count)
        outs, linear = linearized(trace, traced, leaves, active, out.num_leaves)
        parts[:] = [out, aux, len(outs), linear]
        return [*outs, *linear.residuals]

    values = recorded_values(transform, call.leaves, record)
    out, aux, total, linear = parts
    linear = linear.with_residuals(values[total:])
    rest = tree.unflatten(aux, values[out.num_leaves : total])
    return out, values[: out.num_leaves], linear, rest


def require_inexact(
    transform: str, call: TransformCall, allow_int: bool, holomorphic: bool
) -> None:
    """Check the dtypes of the arguments that are differentiated.

    Raises:
        DifferentiatedTypeError: an integer without `allow_int`, or a real number in a function
            that is said to be holomorphic.
    """
    advice = ", or set allow_int" if transform in ("grad", "value_and_grad") else ""
    for path, type_ in zip(call.paths, call.types, strict=False):
        if not is_inexact(type_) and not allow_int:
            raise errors.DifferentiatedTypeError(
                transform,
                f"{path} of {errors.function_text(call.function)} is {type_.strong()}; only floats "
                "and complex numbers have derivatives: pass 3.0 instead of 3, or convert the array "
                f"with .astype(float){advice}",
            )
        if holomorphic and type_.dtype.kind != "c":
            raise errors.DifferentiatedTypeError(
                transform,
                f"with holomorphic, arguments are complex, but {path} of "
                f"{errors.function_text(call.function)} is {type_.strong()}: pass a complex "
                "number, or leave holomorphic out",
            )
