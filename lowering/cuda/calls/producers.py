"""The streams that arrays of other libraries come from."""

from __future__ import annotations

import sys
from typing import Any


def current_stream_of(array: Any) -> int | None:
    """The handle of the current stream of the library of an array; None where there is none.

    Known are PyTorch and CuPy, which let a consumer wait for their current stream.
    """
    name = type(array).__module__.partition(".")[0]
    library: Any = sys.modules.get(name)
    if name == "torch" and library is not None and array.is_cuda:
        return int(library.cuda.current_stream(array.device).cuda_stream)
    if name == "cupy" and library is not None:
        return int(library.cuda.get_current_stream().ptr)
    return None
