"""Eager dispatch: an op is recorded if an argument is traced, else it runs now.

NumPy arrays and Arrays in host memory go through the NumPy reference. Arrays on a device go through
a compiled program of the one op, so that results stay on the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import remembered, view_on_device
from tracegraph.arrays.device_calls import compiled_op
from tracegraph.dtypes import bfloat16
from tracegraph.ir.op import Op
from tracegraph.ir.types import ArrayType, require_plain, type_of
from tracegraph.tracing import views
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.selected_operations import applied
from tracegraph.tracing.trace import bind, recorder
from tracegraph.tracing.tracer import Tracer


def apply(op: Op, *args: Any, **attrs: Any) -> Any:
    """Apply an op: record an equation if a tracer is among the arguments, else run it now."""
    trace = recorder(args)
    if trace is not None:
        if trace.uses.selects and Selected in map(type, args):
            return applied(apply, op, args, attrs)
        return bind(trace, op, args, attrs)
    return run(op, args, attrs)


def apply_view(
    op: Op, x: Any, *indices: Any, strides: views.Strides | None = None, **attrs: Any
) -> Any:
    """Apply an op whose result is a view of `x`, as NumPy's is, though the op is not always one.

    `strides` are those of a gather at more than one place.
    """
    y = apply(op, x, *indices, **attrs)
    if isinstance(x, Tracer):
        return views.attach(y, x, strides)
    if type(x) is Array and type(y) is Array and x.has_layout:
        return view_on_device(y, x, op, indices, attrs, strides)
    return y


def run(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Apply an op to values that are not traced.

    The result is an Array if an argument is one, else what NumPy makes of them.
    """
    if not any(type(a) is Array for a in args):
        return op.reference(*args, **attrs)
    if any_on_device(args):
        return remembered(op, args, attrs, compiled_op(op, tuple(attrs.items()))(*args))
    operands = _operands(op, args, attrs)
    results = op.reference(*operands, **attrs)
    if isinstance(results, tuple):
        return tuple([result_of(r, args) for r in results])
    return result_of(results, args, weak=_is_weak(op, args, attrs))


def result_of(result: Any, args: Iterable[Any], *, weak: bool = False) -> Array:
    """The Array of a result of NumPy's for these arguments: a view of one if the result is.

    A view of an ndarray is read-only, as that belongs to others.
    """
    data = np.asarray(result)
    if (data.base is not None or result is data) and any(
        isinstance(x, np.ndarray) and np.may_share_memory(x, data) for x in args
    ):
        data = data.view()
        data.setflags(write=False)
    return Array.sharing(data, weak=weak)


def _operands(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[Any]:
    """The arguments as NumPy takes them.

    It does not know how Python ints of 64 bits meet, and that Python floats become bfloat16.
    """
    values = [as_numpy(a) for a in args]
    if op.promote is None:
        return values
    if not all(type(v) is int for v in values) and not any(map(_is_bfloat16, values)):
        return values
    dtypes = op.promote(*map(type_of, values), **attrs)
    return [np.asarray(v, d)[()] for v, d in zip(values, dtypes, strict=True)]


def _is_bfloat16(x: Any) -> bool:
    return bool(getattr(x, "dtype", None) == bfloat16)


def _is_weak(op: Op, args: Iterable[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether the result is a Python number, as all operands are."""
    if not all(a.weak if type(a) is Array else type(a) in (int, float, complex) for a in args):
        return False
    types = [type_of(a) for a in args]
    if op.promote is not None:
        dtypes = op.promote(*types, **attrs)
        types = [ArrayType(d, t.shape, True) for t, d in zip(types, dtypes, strict=True)]
    return op.result_types(types, attrs)[0].weak


def any_of_bfloat16(args: Iterable[Any]) -> bool:
    """Whether an array of bfloat16 is among the arguments; NumPy computes with it in float32."""
    return any(map(_is_bfloat16, args))


def any_on_device(args: Iterable[Any]) -> bool:
    """Whether an Array in device memory is among the arguments."""
    return any(type(a) is Array and not isinstance(a.data, np.ndarray) for a in args)


def as_numpy(x: Any) -> Any:
    """`x` as an argument of NumPy; a weak Array becomes a Python number."""
    if type(x) is not Array:
        if type(x) is not np.ndarray:
            require_plain(x)
        return x
    if x.weak:
        return x.item()
    data = x.data
    # a view, which is writable if the Array is: so are views that NumPy makes of it
    return data.view() if isinstance(data, np.ndarray) else x.__array__()
