"""Dispatch to NumPy where no operand is ours, and conversion of operands to arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from reprlib import repr as shortened
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply
from tracegraph.errors import BooleanMaskError, UnrepresentableError
from tracegraph.errors.tracebacks import hide_frames
from tracegraph.ir.op import get
from tracegraph.ir.types import require_plain
from tracegraph.numpy.dispatching.statics import require_static, static_parameters
from tracegraph.tracing.foreign import is_foreign
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.layouts import copy_order, set_order
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.trace import current_trace, innermost
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import has_layout

P = ParamSpec("P")
R = TypeVar("R")

CAST = get("cast")


def is_ours(values: Iterable[Any]) -> bool:
    """Whether tracers or Arrays are among values, also inside of lists and tuples."""
    for value in values:
        if isinstance(value, ArrayOperators):
            return True
        if isinstance(value, (list, tuple)) and is_ours(value):
            return True
    return False


def is_python_number(value: Any) -> bool:
    """Whether a value is weakly typed, as a Python int, float or complex is."""
    return bool(getattr(value, "weak", type(value) in (int, float, complex)))


def numpy_function(fun: Callable[P, R]) -> Callable[P, R]:
    """Pass calls without tracers and Arrays to the NumPy function of the same name.

    `fun` handles only calls with tracers or Arrays.
    """
    name = fun.__name__
    found = [space for space in (np, np.linalg, np.fft) if callable(getattr(space, name, None))]
    if not found:
        return fun  # an older NumPy lacks it
    reference: Callable[..., Any] = getattr(found[0], name)
    label = f"{found[0].__name__}.{name}"

    @wraps(fun)
    def dispatching(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if is_ours(args) or is_ours(kwargs.values()):
                trace = innermost.trace
                if (
                    trace is not None
                    and trace.uses.selects
                    and (Selected in map(type, args) or Selected in map(type, kwargs.values()))
                ):
                    return FUNCTIONS["apply_to_selected"](name, fun, args, kwargs)  # type: ignore[no-any-return]
                return fun(*args, **kwargs)
            result: R = reference(*args, **kwargs)
            return result
        except Exception as error:
            require_static(label, fun, args, kwargs)
            if isinstance(error, BooleanMaskError) and error.is_of_shape:
                raise FUNCTIONS["refusal_by_name"](name, args, kwargs, error) from None
            hide_frames(error)
            raise

    return dispatching


SIZES = frozenset({"size", "fill_value", "length", "total_repeat_length"})
"""Keywords of JAX's that NumPy lacks: they give a result that depends on elements a static size."""


def extended_function(*keywords: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The same, for a function with keywords that NumPy lacks: `fun` handles calls with them."""
    added = frozenset(keywords)

    def decorate(fun: Callable[P, R]) -> Callable[P, R]:
        numpys, own = numpy_function(fun), static_parameters(fun)

        @wraps(fun)
        def dispatching(*args: P.args, **kwargs: P.kwargs) -> R:
            return numpys(*args, **kwargs) if added.isdisjoint(kwargs) else own(*args, **kwargs)

        return dispatching

    return decorate


sized_function = extended_function(*SIZES)
"""The same, for a function with keywords in `SIZES`."""


def as_array(x: Any, dtype: DTypeLike | None = None) -> Any:
    """`x` as an array of ours or of NumPy's, never weak, in another dtype if one is given.

    Nested lists that hold tracers or Arrays are stacked. Tracers and Arrays are not copied.
    """
    if is_foreign(x):
        trace = current_trace()
        x = asarray(x) if trace is None else trace.adopt(x)
    if not isinstance(x, ArrayOperators):
        if type(x) is not np.ndarray:
            require_plain(x)
        if not (isinstance(x, (list, tuple)) and is_ours(x)):
            with np.errstate(all="ignore"):
                return np.asarray(x) if dtype is None else _converted(np.asarray(x), x, dtype)
        x = _stacked(x)
    own: Any = x
    if dtype is None:
        return apply(CAST, own, dtype=own.dtype) if own.weak else own
    target = np.dtype(dtype)
    if own.weak and target.kind in "iu" and own.dtype.kind in "iu" and target != own.dtype:
        own = apply(CAST, own, dtype=target, weak=True)  # whose range is checked at the call
    return own if target == own.dtype and not own.weak else apply(CAST, own, dtype=target)


def unchecked(x: Any, dtype: DTypeLike) -> Any:
    """`x` as an array of another dtype; integers wrap, as NumPy converts with casting="unsafe"."""
    if isinstance(x, ArrayOperators) and is_python_number(x):
        return apply(CAST, x, dtype=np.dtype(dtype))
    return as_array(as_array(x), dtype)


def _converted(array: np.ndarray[Any, Any], given: Any, dtype: DTypeLike) -> np.ndarray[Any, Any]:
    """A NumPy array in another dtype: arrays are cast, and numbers assigned, as NumPy does.

    An array of this dtype is not copied.

    Raises:
        UnrepresentableError: NaN, an infinity or a large number for integers, or a complex number
            of Python's for real ones.
    """
    target = np.dtype(dtype)
    if isinstance(given, np.ndarray) or (
        isinstance(given, np.generic) and array.dtype.kind in "cV"
    ):
        if array.dtype.kind == "c" and target.kind not in "cb":
            array = array.real  # what the conversion does, without its warning
        return array.astype(target, copy=False)
    result = np.empty(array.shape, target)
    try:
        result[...] = given
    except (TypeError, ValueError, OverflowError) as error:
        raise UnrepresentableError(shortened(given), target, str(error)) from None
    return result


def _stacked(values: Any) -> Any:
    """Nested sequences as one array: `[[a, b], [c, d]]` with scalars or arrays in them."""
    parts = [as_array(v) for v in values]
    dtype = np.result_type(*(p.dtype for p in parts))
    rows = [apply(get("reshape"), as_array(p, dtype), shape=(1, *p.shape)) for p in parts]
    return apply(get("concatenate"), *rows, axis=0)


def lifted(x: Any) -> Any:
    """While tracing, an array or scalar as a tracer; otherwise the value itself."""
    trace = current_trace()
    if trace is None or isinstance(x, ArrayOperators):
        return x
    return Tracer(trace, trace.read(x), "a constant array" if np.ndim(x) else None)


def copied(x: Any, order: str = "C") -> Any:
    """A copy, laid out in an order of NumPy's: an array that shares memory with no other."""
    copy: Any
    if isinstance(x, Tracer):
        trace = current_trace() or x.owner
        copy = Tracer(trace, trace.read(x))
    elif type(x) is Array and has_layout(x):
        copy = x.own()
    elif type(x) is Array:
        return x.copy(order)
    else:
        return x if isinstance(x, ArrayOperators) else np.array(x, order=order)  # type: ignore[call-overload]
    set_order(copy, copy_order(x, order))
    return copy


def laid_out(result: Any, order: tuple[int, ...] | None) -> Any:
    """A new array, which may have been made as a view of one, laid out with its axes in an order;
    None: by rows. NumPy has seen to the layouts of its own.
    """
    if not has_layout(result) or (result.alias is None and result.axis_order == order):
        return result
    new = copied(result)
    set_order(new, order)
    return new
