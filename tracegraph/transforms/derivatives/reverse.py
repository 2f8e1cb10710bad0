"""Reverse mode: vjp, grad and value_and_grad."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.parameters import parameters_of
from tracegraph.tracing.trace import Trace
from tracegraph.transforms.derivatives.activity import is_inexact
from tracegraph.transforms.derivatives.forward import linearized_call, require_inexact
from tracegraph.transforms.derivatives.linear_functions import LinearForm, Pullback
from tracegraph.transforms.derivatives.reverse_loops import require_bounds
from tracegraph.transforms.transformed_calls import (
    TracedFunction,
    TransformCall,
    dense_inexact,
    linearized,
    recorded_values,
    require_function,
    split_aux,
)

__all__ = ["grad", "value_and_grad", "vjp"]

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")

_BY_POSITIONS = "name arguments by their positions: argnums=0, or several, argnums=(0, 2)"

OTHER_KEYWORDS = {"argnum": "it is called argnums", "argnames": _BY_POSITIONS}
"""Keywords of other libraries, and what to write in place of them, where there is `argnums`."""

_refuses_other_keywords = errors.refuses(
    **OTHER_KEYWORDS,
    wrt=_BY_POSITIONS,
    reduce_axes="there are no named axes here: sum the gradient over the lanes of vmap",
)


@entry_point
@errors.refuses(
    argnums="vjp differentiates by all arguments: bind others by a lambda",
    reduce_axes="there are no named axes here: sum the gradient over the lanes of vmap",
)
def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and the pullback of cotangents: vector times Jacobian.

    Args:
        fun: a function of pytrees of arrays.
        *primals: its arguments.
        has_aux: `fun` returns a pair, and only the first part is differentiated.

    Returns:
        The result; the pullback, which takes a cotangent of the result, a tree of its structure,
        shapes and dtypes in which None stands for zero, and returns a tuple with the cotangent of
        each argument, None for integers and bools; and aux if there is one. The pullback is a tree
        of what it keeps: jitted functions, loops and branches take and return it. Complex
        derivatives are transposed without conjugation.

    Raises:
        DerivativeError: an op has no derivative.
        ReverseLoopError: the number of steps of a loop is not known.

    >>> y, pullback = vjp(lambda a, b: a * b, 3.0, 4.0)
    >>> pullback(1.0)
    (np.float64(4.0), np.float64(3.0))
    """
    call = TransformCall("vjp", fun, primals, {}, range(len(primals)))
    out, values, linear, aux = linearized_call("vjp", fun, call, has_aux)
    require_bounds(
        linear.region, [i < sum(linear.inputs) for i in range(len(linear.region.params))]
    )
    pullback = Pullback(LinearForm(call, linear, out, values), linear.residuals)
    results = tree.unflatten(out, values), pullback
    return (*results, aux) if has_aux else results


@_refuses_other_keywords
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """The function that returns the gradient of a scalar function.

    Args:
        fun: returns a scalar: a real number, or with `holomorphic` a complex one.
        argnums: the position of the argument to differentiate by, or several. Other arguments may
            be anything; outside of traced functions, they are passed on as they are.
        has_aux: `fun` returns a pair, the scalar and anything of arrays; so does the gradient.
        holomorphic: the function is complex differentiable. For a real function of a complex z it
            is not set: the gradient of |z|² is 2·conj(z), and steepest descent goes along
            -conj(grad).
        allow_int: give None for integers and bools, instead of an error.

    Returns:
        A function of the same arguments. The gradient has the structure, shapes and dtypes of the
        argument; it is a tuple of gradients if `argnums` is a sequence.

    Raises:
        ScalarResultError: the result is not a scalar.
        DifferentiatedTypeError: an argument is an integer, or the result is complex or an integer.
        ArgumentNumberError: there is no such argument.
        DerivativeError, ReverseLoopError: as in `vjp`.

    >>> import numpy as np
    >>> grad(lambda x: (x * x).sum())(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    both = _differentiated("grad", fun, argnums, has_aux, holomorphic, allow_int)

    @entry_point
    @wraps(fun)
    def gradient(*args: P.args, **kwargs: P.kwargs) -> Any:
        value, found = both(args, kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


@_refuses_other_keywords
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]:
    """The function that returns the value and the gradient of a scalar function.

    Arguments and errors are those of `grad`. With `has_aux`, it returns ``((value, aux), grad)``.

    >>> value_and_grad(lambda x: x**3)(2.0)
    (np.float64(8.0), np.float64(12.0))
    """
    both = _differentiated("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int)

    @entry_point
    @wraps(fun)
    def value_and_gradient(*args: P.args, **kwargs: P.kwargs) -> tuple[R, Any]:
        return both(args, kwargs)

    return value_and_gradient


def positions(transform: str, fun: Function, argnums: Any, count: int) -> list[int]:
    """The positions of the arguments to differentiate by, from 0.

    Raises:
        ArgumentNumberError: no int, a position that no argument of the call has, or one named
            twice.
    """
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    try:
        found = [operator.index(i) for i in given]
    except TypeError:
        raise errors.ArgumentNumberError(
            transform,
            f"argnums must be the position of an argument, or several, not "
            f"{errors.value_text(argnums)}{_position_text(fun, argnums)}",
        ) from None
    normal = [i + count if i < 0 else i for i in found]
    if any(not 0 <= i < count for i in normal) or len(set(normal)) < len(normal):
        raise errors.ArgumentNumberError(
            transform,
            f"argnums={argnums} must name distinct arguments passed by position, and "
            f"{errors.function_text(fun)} got {count} of these; pass by position what it is to be "
            "differentiated by",
        )
    return normal


def _position_text(fun: Function, argnums: Any) -> str:
    """The position of a parameter that is given by its name."""
    names = parameters_of(fun).positional
    if isinstance(argnums, str) and argnums in names:
        position = names.index(argnums)
        return f": {argnums} of {errors.function_text(fun)} has position {position}"
    return "; arguments have no names here"


def _differentiated(
    transform: str, fun: Function, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool
) -> Callable[[Sequence[Any], dict[str, Any]], tuple[Any, Any]]:
    """(args, kwargs) -> the result, and the gradients as `argnums` asks for them."""
    require_function(transform, fun)

    def both(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        chosen = positions(transform, fun, argnums, len(args))
        call = TransformCall(transform, fun, args, kwargs, chosen)
        require_inexact(transform, call, allow_int, holomorphic)
        results: list[tree.Structure] = []

        def record(trace: Trace, leaves: Sequence[Any]) -> Sequence[Any]:
            run = split_aux(transform, fun, call.run) if has_aux else call.run
            traced = call.trace(transform, trace, run)
            results.append(traced.result.structure)
            _require_scalar(transform, fun, traced, has_aux, holomorphic)
            active = [i < call.count and is_inexact(t) for i, t in enumerate(call.types)]
            outs, linear = linearized(trace, traced, leaves, active, 1)
            one = outs[0].dtype.type(1)
            found = linear.transpose(trace, [one])[: call.count]
            return [*outs, *dense_inexact(trace, call.types[: call.count], found)]

        values = recorded_values(transform, call.leaves, record)
        structure = results[0]
        dense = iter(values[structure.num_leaves :])
        leaves = [next(dense) if is_inexact(t) else None for t in call.types[: call.count]]
        gradients = call.unflatten(leaves)
        value = tree.unflatten(structure, values[: structure.num_leaves])
        return value, tuple(gradients) if isinstance(argnums, (tuple, list)) else gradients[0]

    return both


def _require_scalar(
    transform: str, fun: Function, traced: TracedFunction, has_aux: bool, holomorphic: bool
) -> None:
    structure = traced.result.structure
    if has_aux:
        structure = structure.children()[0]
    if not structure.is_leaf():
        advice = "return one number, and other results beside it as a pair with has_aux"
        if not structure.num_leaves:
            advice = "a return is missing, or returns no array"
        got = f"the tree {errors.structure_text(structure)}"
        raise errors.ScalarResultError(transform, fun, got, advice)
    type_ = traced.types[0]
    if type_.shape:
        advice = "sum it, or use jacrev for the derivatives of all elements"
        raise errors.ScalarResultError(transform, fun, str(type_), advice)
    require_result(transform, fun, [type_], holomorphic)


def require_result(
    transform: str, fun: Function, types: Sequence[ArrayType], holomorphic: bool
) -> None:
    """Check the dtypes of results that are differentiated backwards.

    Raises:
        DifferentiatedTypeError: an integer; or a complex number, `holomorphic` not being set; or
            a real one, it being set.
    """
    for type_ in types:
        if not is_inexact(type_):
            raise errors.DifferentiatedTypeError(
                transform, f"{errors.function_text(fun)} returned {type_}, which has no derivative"
            )
        if (type_.dtype.kind == "c") != holomorphic:
            advice = (
                "with holomorphic, results are complex"
                if holomorphic
                else "set holomorphic if it is complex differentiable, or return a real number, "
                "such as np.abs(y) or y.real"
            )
            raise errors.DifferentiatedTypeError(
                transform, f"{errors.function_text(fun)} returned {type_}; {advice}"
            )
