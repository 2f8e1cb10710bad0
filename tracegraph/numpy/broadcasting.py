"""`broadcast_to` as users call it: a read-only view, also where nothing is repeated."""

from __future__ import annotations

from typing import Any

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import is_in_host_memory, read_only_view, view_on_device
from tracegraph.ir.op import get
from tracegraph.numpy import shapes
from tracegraph.numpy.dispatching.dispatch import as_array, lifted, numpy_function
from tracegraph.numpy.shapes import Shape
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import BROADCAST_VIEW, TracerView, has_layout, mark_unordered

__all__ = ["broadcast_to"]


@numpy_function
def broadcast_to(array: Any, shape: Shape, subok: bool = False) -> Any:
    """The array repeated along new axes and axes of extent 1; a read-only view.

    Shape: `shape`.
    Dtype: that of `array`.

    Raises:
        ValueError: the shape does not broadcast to the other.
        TracerIndexError: an extent is traced.

    >>> tnp.broadcast_to([1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    array = lifted(as_array(array))
    result = shapes.broadcast_to(array, shape)
    if result is array and is_in_host_memory(array):
        return read_only_view(Array.sharing(array.data.view()), BROADCAST_VIEW)
    if result is not array or not has_layout(array):
        return result
    attrs = {"shape": array.shape}
    if not isinstance(array, Tracer):
        return view_on_device(array.own(), array, get("broadcast_to"), (), attrs)
    view = Tracer(array.owner, array.atom)
    if array.axis_order is not None:
        mark_unordered(view)
    view.alias = TracerView(array, get("broadcast_to"), (), attrs, array.atom, None, BROADCAST_VIEW)
    return view
