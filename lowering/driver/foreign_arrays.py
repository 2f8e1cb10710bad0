"""Arrays of other libraries: the device memory behind DLPack or `__cuda_array_interface__`."""

from __future__ import annotations

import numpy as np
from cuda.core.utils import StridedMemoryView

from lowering.cuda.interface import ForeignArray
from tracegraph.ir.types import row_major_strides

_NO_STREAM = -1
"""What DLPack passes to a producer if nothing has to wait for it."""


def foreign_array(array: object, stream: int | None) -> ForeignArray | None:
    """A view of another library's array; None if it is not in device memory.

    If a stream is given, it waits for the array's producer.
    """
    if not (hasattr(array, "__dlpack__") or hasattr(array, "__cuda_array_interface__")):
        return None
    if isinstance(array, np.ndarray | np.generic):
        return None
    producer_stream = _NO_STREAM if stream is None else stream
    view = StridedMemoryView.from_any_interface(array, stream_ptr=producer_stream)
    if not view.is_device_accessible:
        return None
    if view.dtype is None:
        raise TypeError(
            f"a device array of type {type(array).__qualname__} has a dtype that NumPy lacks; "
            "convert it to one that NumPy or ml_dtypes has"
        )
    shape = tuple(view.shape)
    strides = tuple(view.strides) if view.strides is not None else row_major_strides(shape)
    return ForeignArray(
        view.ptr, np.dtype(view.dtype), shape, strides, view.device_id, (view, array)
    )
