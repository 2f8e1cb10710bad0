"""Matrix products of cuBLAS in NumPy, on host memory, by what its documentation says of them."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np

from lowering.cuda.libraries.cublas import Cublas
from tracegraph.dtypes import bfloat16


def cublas() -> Cublas:
    """A handle whose calls run at once."""
    handle = Cublas.__new__(Cublas)
    handle._cublas, handle._handle = NumpyBlas(), 7
    return handle


class NumpyBlas:
    """In place of `nvmath.bindings.cublas`."""

    Operation = enum.IntEnum("Operation", ["N", "T", "C"], start=0)
    GemmAlgo = enum.IntEnum("GemmAlgo", ["DEFAULT"], start=-1)

    def gemm_strided_batched_ex(
        self, handle: int, transpose_a: int, transpose_b: int, m: int, n: int, k: int, *given: Any
    ) -> None:
        """`batch` products of matrices that are as far apart as the strides say."""
        alpha, a, kind, lda, sa, b, _, ldb, sb, beta, c, _, ldc, sc, batch, compute, _ = given
        itemsize = _dtype(kind).itemsize
        places = [
            [address + i * stride * itemsize for i in range(batch)]
            for address, stride in ((a, sa), (b, sb), (c, sc))
        ]
        sizes = (transpose_a, transpose_b, m, n, k)
        self._products(sizes, (lda, ldb, ldc), places, kind, (alpha, beta), compute)

    def gemm_batched_ex(
        self, handle: int, transpose_a: int, transpose_b: int, m: int, n: int, k: int, *given: Any
    ) -> None:
        """`batch` products of the matrices at the addresses in three arrays."""
        alpha, a, kind, lda, b, _, ldb, beta, c, _, ldc, batch, compute, _ = given
        places = [list((ctypes.c_uint64 * batch).from_address(array)) for array in (a, b, c)]
        assert all(address % 16 == 0 for array in places for address in array)
        sizes = (transpose_a, transpose_b, m, n, k)
        self._products(sizes, (lda, ldb, ldc), places, kind, (alpha, beta), compute)

    def _products(
        self,
        sizes: tuple[int, ...],
        leading: tuple[int, ...],
        places: list[list[int]],
        kind: int,
        factors: tuple[int, int],
        compute: int,
    ) -> None:
        transpose_a, transpose_b, m, n, k = sizes
        dtype = _dtype(kind)
        wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
        scales = [np.ctypeslib.as_array(_at(f, wide.itemsize)).view(wide)[0] for f in factors]
        assert scales == [1, 0]
        for a, b, c in zip(*places, strict=True):
            left = _matrix(a, dtype, m, k, leading[0], transpose_a).astype(wide)
            right = _matrix(b, dtype, k, n, leading[1], transpose_b).astype(wide)
            _matrix(c, dtype, m, n, leading[2], 0)[...] = (left @ right).astype(dtype)


def _dtype(kind: int) -> np.dtype[Any]:
    from nvmath import CudaDataType as Data

    found: dict[int, Any] = {
        Data.CUDA_R_16F: np.float16,
        Data.CUDA_R_16BF: bfloat16,
        Data.CUDA_R_32F: np.float32,
        Data.CUDA_R_64F: np.float64,
        Data.CUDA_C_32F: np.complex64,
        Data.CUDA_C_64F: np.complex128,
    }
    return np.dtype(found[kind])


def _at(address: int, nbytes: int) -> Any:
    return (ctypes.c_uint8 * nbytes).from_address(address)


def _matrix(
    address: int, dtype: np.dtype[Any], rows: int, columns: int, leading: int, transpose: int
) -> np.ndarray[Any, Any]:
    """The column-major matrix at an address; transposed, if it is to be."""
    height, width = (columns, rows) if transpose else (rows, columns)
    assert leading >= height
    memory = _at(address, ((width - 1) * leading + height) * dtype.itemsize)
    strides = (dtype.itemsize, leading * dtype.itemsize)
    matrix: np.ndarray[Any, Any] = np.ndarray((height, width), dtype, memory, strides=strides)
    return matrix.T if transpose else matrix
