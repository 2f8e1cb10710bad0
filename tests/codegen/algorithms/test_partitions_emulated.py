"""Kernels for tridiagonal systems, on the CPU: residuals of all sizes, and of hard matrices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from lowering.algorithms.partitions import partition, partition_kernels
from tests.emulation.emulator import (
    ARGUMENT,
    COMPILER,
    SHIM,
    for_host,
    host_library,
    kernel_wrapper,
)
from tests.emulation.front_end import assert_front_end_accepts
from tracegraph.ir.custom_kernels import CudaText
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.program import Program
from tracegraph.ir.types import type_of
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.tracing.trace import trace_program

System = tuple[Any, Any, Any, Any]

SIZES = [
    (1, 1, "float64", (3,)),
    (2, 3, "float32", ()),
    (3, 1, "complex64", (5,)),
    (8, 2, "float64", (70,)),
    (9, 1, "float32", (3,)),
    (40, 3, "complex128", (2,)),
    (300, 1, "float64", (2,)),
    (4096, 1, "float32", ()),
]
"""Rows, columns, dtype and batch of systems that have a block each, or share one."""

SPANS = [(70, 3, "float64", (2,)), (1500, 1, "complex64", ()), (900, 1, "float64", (2,))]
"""The same in short spans, and in spans of spans."""


@contextmanager
def short_spans() -> Iterator[None]:
    """Blocks have 2 lanes of a system, where they could have 4."""
    with (
        patch.object(partition, "MOST_LANES", 4),
        patch.object(partition, "SPAN", 2),
        patch.object(partition_kernels, "MOST_LANES", 4),
        patch.object(partition_kernels, "SPAN", 2),
    ):
        yield


def mixed(rng: Any, dtype: str, *shape: int) -> Any:
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "c" in dtype else x).astype(dtype)


def system(n: int, k: int, dtype: str, batch: tuple[int, ...] = ()) -> System:
    rng = np.random.default_rng(n)
    dl, d, du = (mixed(rng, dtype, *batch, n) for _ in range(3))
    if n == 1:
        d = d + 3
    return dl, d, du, mixed(rng, dtype, *batch, n, k)


def program_for(given: System) -> Program:
    return trace_program(
        lambda *xs: (partition_kernels.tridiagonal_solve(*xs),), list(map(type_of, given)), "solve"
    )


def calls_for(given: System) -> list[KernelCall]:
    return [e.attrs["call"] for e in program_for(given).body.eqns if e.op is custom_kernel]


def run(given: System, launched: Callable[[KernelCall, Any], Any]) -> Any:
    """The solution, where `launched` gives the result of a call for its operands."""
    program = program_for(given)
    values = dict(zip(program.body.params, given, strict=True))
    for eqn in program.body.eqns:
        operands = [np.ascontiguousarray(values[atom]) for atom in eqn.operands]
        if eqn.op is custom_kernel:
            values[eqn.outputs[0]] = launched(eqn.attrs["call"], operands)
        else:
            values[eqn.outputs[0]] = eqn.op.reference(*operands, **eqn.attrs)
    return values[program.body.results[0]]


def solved(given: System, folder: Path) -> Any:
    """The solution by the kernels of the program, in the emulator."""
    folder.mkdir(exist_ok=True)
    return run(given, lambda call, arrays: launched(call, arrays, folder))


def launched(call: KernelCall, arrays: Any, folder: Path) -> Any:
    """What a kernel writes."""
    launch, name = call.launch([type_of(x) for x in arrays]), call.kernel.name
    wrapper = kernel_wrapper(name, len(call.kernel.parameters) + 1)
    source = f"{ARGUMENT}namespace {{\n{for_host(launch.text, False)}}}\n{wrapper}"
    library = host_library(SHIM, source, folder / f"{len(list(folder.iterdir()))}.cpp")
    (out,) = [np.full(t.shape, np.nan, t.dtype) for t in launch.out_types]
    words = [*(x.ctypes.data for x in arrays), *(s.word for s in call.scalars), out.ctypes.data]
    failed = library.launch(
        ctypes.cast(getattr(library, f"run_{name}"), ctypes.c_void_p),
        (ctypes.c_void_p * len(words))(*words),
        (ctypes.c_uint * launch.grid[0])(*range(launch.grid[0])),
        launch.grid[0],
        1,
        prod(launch.block),
    )
    assert not failed, "a barrier or shuffle that some threads never reach"
    return out


def assert_solves(given: System, x: Any, units: float = 16) -> None:
    """The residual of each system is some units of its largest terms."""
    dl, d, du, b = given
    wide = x.astype(complex if x.dtype.kind == "c" else float)
    rest = d[..., None] * wide - b
    rest[..., 1:, :] += dl[..., 1:, None] * wide[..., :-1, :]
    rest[..., :-1, :] += du[..., :-1, None] * wide[..., 1:, :]
    largest = np.maximum(np.maximum(np.abs(dl), np.abs(d)), np.abs(du)).max(-1)[..., None, None]
    size = largest * np.abs(wide).max((-2, -1), keepdims=True)
    size = size + np.abs(b).max((-2, -1), keepdims=True)
    assert (np.abs(rest) <= units * np.finfo(x.dtype).eps * size).all()


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("case", SIZES)
def test_systems_of_one_block(case: Any, tmp_path: Path) -> None:
    given = system(*case)
    assert_solves(given, solved(given, tmp_path))


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("case", SPANS)
def test_systems_of_several_blocks(case: Any, tmp_path: Path) -> None:
    given = system(*case)
    with short_spans():
        assert_solves(given, solved(given, tmp_path))


def hard(n: int) -> System:
    """Matrices that need swaps, one of each kind, with two right-hand sides."""
    rng = np.random.default_rng(0)
    one, zero, ramp = np.ones(n), np.zeros(n), np.arange(n)
    kinds = [
        (one, zero, one),  # regular for even n: every second pivot is a swap
        (one, 1e-300 * one, -one),
        (rng.standard_normal(n), 1e-8 * rng.standard_normal(n), rng.standard_normal(n)),
        (one, np.abs(ramp - (n - 1) / 2), one),  # Wilkinson's
        (10.0 ** rng.uniform(-15, 0, n), rng.standard_normal(n), 10.0 ** rng.uniform(-15, 0, n)),
        (ramp % 2 * one, zero, (ramp + 1) % 2 * one),  # a permutation
        (one, 2 * one, one),  # a Laplacian, of condition n²
        (64 * one, 65 * one, one),
        (one, 65 * one, 64 * one),
        (10 * one, 1e-5 * one, 0.1 * one),
    ]
    dl, d, du = (np.stack(each) for each in zip(*kinds, strict=True))
    return dl, d, du, rng.standard_normal((len(kinds), n, 2))


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("n", [64, 210])
def test_rows_are_swapped_within_lanes_and_across(n: int, tmp_path: Path) -> None:
    given = hard(n)
    assert_solves(given, solved(given, tmp_path / "one"))
    with short_spans():
        assert_solves(given, solved(given, tmp_path / "several"))


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
@pytest.mark.parametrize("n", [2, 31])
def test_a_singular_matrix_spoils_no_other(n: int, tmp_path: Path) -> None:
    dl, d, du, b = system(n, 1, "float64", (3,))
    dl[1], d[1], du[1] = 0, 0, 0
    x = solved((dl, d, du, b), tmp_path)
    assert not np.isfinite(x[1]).any()
    assert_solves(tuple(y[[0, 2]] for y in (dl, d, du, b)), x[[0, 2]])  # type: ignore[arg-type]


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_what_is_outside_of_a_matrix_is_not_used(tmp_path: Path) -> None:
    dl, d, du, b = system(40, 1, "float64")
    given = dl.copy(), d, du.copy(), b
    dl[0] = du[-1] = np.nan
    given[0][0] = given[2][-1] = 0
    assert_solves(given, solved((dl, d, du, b), tmp_path))


@pytest.mark.parametrize("case", SPANS)
def test_references_solve_in_spans(case: Any) -> None:
    """What the host runs in place of the kernels."""
    given = system(*case)
    with short_spans():
        x = run(given, lambda call, arrays: call.run(*arrays)[0])
        assert len(calls_for(given)) >= 3
    assert_solves(given, x, 64)


def test_nvrtc_takes_them() -> None:
    for case in (*SIZES, (20000, 1, "complex128", ())):
        for call in calls_for(system(*case)):
            assert isinstance(call.kernel.code, CudaText)
            assert isinstance(call.kernel.code.text, str)
            assert_front_end_accepts(call.kernel.code.text)
