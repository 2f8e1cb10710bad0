"""Views of Arrays, as the functions that make them see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.ir.op import Op
from tracegraph.tracing import views
from tracegraph.tracing.layouts import result_order


def is_in_host_memory(x: Any) -> bool:
    """Whether `x` is an Array whose views are NumPy's: they share its memory on the host."""
    return type(x) is Array and isinstance(x.data, np.ndarray)


def read_only_view(view: Any, what: str) -> Any:
    """A view through which nothing is written from here on; `what` it is, for the message."""
    on_device: Any = view
    if is_in_host_memory(view):
        view.data.setflags(write=False)
    elif getattr(view, "alias", None) is not None:
        view.alias.read_only = what
    elif type(view) is Array:
        view.as_read_only(views.layout_of(view.shape, views.strides_of(on_device)))
    return view


def remembered(op: Op, args: Sequence[Any], attrs: Mapping[str, Any], results: Any) -> Any:
    """Results of an op on a device: a view of the first argument, or arrays of their own."""
    if isinstance(results, tuple):
        return tuple([each.local() for each in results])
    if op.is_view and type(args[0]) is Array:
        return view_on_device(results, args[0], op, args[1:], attrs)
    results.axis_order = result_order(op, args, attrs, results.shape)
    return results.local()


def view_on_device(
    result: Array,
    base: Array,
    op: Op,
    indices: Sequence[Any],
    attrs: Mapping[str, Any],
    strides: views.Strides | None = None,
) -> Array:
    """Mark a result on a device as a view of `base`, unless NumPy would have copied.

    A view of what is read-only is read-only, and need not know its base, but how it is laid out.
    """
    if not base.remembers_views:
        if strides is not None:
            return result.as_read_only(views.layout_of(result.shape, strides))
        layout = views.layout_after(
            op, tuple(attrs.items()), base.shape, base.own_strides, result.shape
        )
        return result.local() if layout is None else result.as_read_only(layout)
    made: Any = result
    viewed: Any = base
    view = views.TracerView(viewed, op, tuple(indices), dict(attrs), None, strides)
    marked: Array = views.linked(made, view)
    return marked.as_view()


def computed_view_on_device(result: Any, base: Any, compute: Any) -> Array:
    """The same for `compute(base, dtype)`, from which `compute` with its dtype gives the base."""
    view: Array
    if base.remembers_views:
        view = views.attach_computed(result, base, compute)
        return view.as_view()
    strides = views.strides_of_bits(result.type, base)
    view = result.as_read_only(views.layout_of(result.shape, strides))
    return view
