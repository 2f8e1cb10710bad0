"""Libraries whose calls are captured, and the products that one of them computes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.modes import Precision

__all__ = ["Gemm", "Library", "PlanningLibrary", "PreparedLibrary"]


@dataclass(frozen=True, slots=True)
class Gemm:
    """A strided batch of column-major products: c = op(a) @ op(b), with op nothing or a transpose.

    Addresses point to the first element, leading dimensions and strides count elements. `dtype_c`
    is that of c if it differs from the factors'. Products of float32 have at least the `precision`.
    """

    dtype: np.dtype[Any]
    transpose_a: bool
    transpose_b: bool
    m: int
    n: int
    k: int
    a: int
    lda: int
    stride_a: int
    b: int
    ldb: int
    stride_b: int
    c: int
    ldc: int
    stride_c: int
    batch: int
    dtype_c: np.dtype[Any] | None = None
    precision: Precision = "float32"


class Library(Protocol):
    """A handle of a library that enqueues its calls on the capture stream."""

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Set the scratch memory of the calls from now on."""


class PreparedLibrary(Library, Protocol):
    """A handle for one call, which needs that much scratch memory."""

    workspace_bytes: int


class PlanningLibrary(Library, Protocol):
    """A library that plans its calls."""

    def prepare(self, call: Any) -> PreparedLibrary:
        """Plan a call, outside of capture: the library may load code, allocate and wait."""
