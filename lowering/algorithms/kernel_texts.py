"""The text of a kernel for matrices: constants, arithmetic of its dtype, algorithm, entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tracegraph.ir.custom_kernels import CudaText
from tracegraph.ops.factorizations.matrices import real_dtype

_REAL = {4: "float", 8: "double"}


@cache
def _read(file: str) -> str:
    from importlib.resources import files  # slow to import, and seldom needed

    return files("lowering.algorithms").joinpath(file).read_text()


def kernel_text(
    entry: str,
    files: Sequence[str],
    dtype: np.dtype[Any],
    constants: Mapping[str, Any],
    parameters: Sequence[str],
    body: str,
) -> CudaText:
    """The unit of a kernel `entry`, whose body calls functions of files in this folder.

    In it, T is the C++ type of elements of the dtype, R that of their parts, and THREADS, one of
    the constants, the threads of a block.
    """
    text = "\n".join(
        [
            _algorithm(files, dtype, constants),
            f'extern "C" __global__ void __launch_bounds__({constants["THREADS"]})',
            f"{entry}({', '.join(parameters)}) {{",
            "  wait_for_primaries();",
            f"  {body}",
            "}",
            "",
        ]
    )
    return CudaText(text, entry, waits=True)


def function_text(
    name: str,
    files: Sequence[str],
    dtype: np.dtype[Any],
    constants: Mapping[str, Any],
    parameters: Sequence[str],
    body: str,
) -> str:
    """The same as a function ``name::run`` of a unit with other code."""
    return "\n".join(
        [
            f"namespace {name} {{",
            _algorithm(files, dtype, constants),
            f"__device__ inline void run({', '.join(parameters)}) {{",
            f"  {body}",
            "}",
            "}",
            *(f"#undef {constant}" for constant in constants),
            "",
        ]
    )


def _algorithm(files: Sequence[str], dtype: np.dtype[Any], constants: Mapping[str, Any]) -> str:
    real = _REAL[real_dtype(dtype).itemsize]
    return "\n".join(
        [
            *(f"#define {constant} {value}" for constant, value in constants.items()),
            "template <class P> struct complex_of;",
            f"typedef {real} R;",
            f"typedef {f'complex_of<{real}>' if dtype.kind == 'c' else real} T;",
            _read("numbers.cuh"),
            *map(_read, files),
        ]
    )
