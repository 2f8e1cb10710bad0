"""The C++ of elementwise ops compiles for GPUs, and gives NumPy's values on the host."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowering.codegen.preamble import preamble
from lowering.cuda.compilation.compile import cubin
from tests.emulation.elementwise_source import (
    Case,
    cases,
    pointers,
    result_like,
    statement,
    template,
)
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.host_functions import HOST_FUNCTIONS
from tests.helpers.agreement import check
from tracegraph.ir.op import Op, all_ops

CASES = list(cases())

HOST = """
#include <math.h>
#include <string.h>
#define __device__
static unsigned __shfl_sync(unsigned, unsigned word, int) { return word; }
static void __syncwarp(unsigned) {}
"""
"""What NVRTC provides and a host compiler does not."""


def _kernels(cases: Iterable[Case]) -> list[str]:
    """A kernel for each template and dtypes: samples differ in values, too."""
    texts = {}
    for case in cases:
        parameters = ", ".join(f"{type_} {name}" for type_, name in pointers(case))
        texts[f"({parameters}) {{ int i = threadIdx.x; {statement(case)} }}"] = case.name
    return [f'extern "C" __global__ void {name}{text}' for text, name in texts.items()]


HALVES = [case for case in CASES if any(h in f"{pointers(case)}" for h in ("half", "bfloat"))]


@pytest.mark.parametrize(
    ("arch", "cases"), [("sm_90", CASES[::2]), ("sm_80", HALVES[::2])], ids=["sm_90", "sm_80"]
)
def test_templates_compile_for_gpus(arch: str, cases: Sequence[Case]) -> None:
    """The front end checks every second case; there is machine code of every second template.

    Before sm_90 the device sources have other instructions for 16-bit floats.
    """
    assert len(cases) > 100
    kernels = "\n".join(_kernels(cases))
    assert_front_end_accepts(preamble(kernels) + kernels, arch)
    kernels = "\n".join(_kernels([*{template(case): case for case in cases}.values()][::2]))
    assert cubin(preamble(kernels) + kernels, arch).code


def _host_function(case: Case) -> str:
    *inputs, out = pointers(case)
    loads = " ".join(
        f"{type_} {name} = ({type_})in[{n}];" for n, (type_, name) in enumerate(inputs)
    )
    return (
        f'extern "C" void tg_host_{case.name}(long n, void** in, void* result) '
        f"{{ {loads} {out[0]} out = ({out[0]})result; "
        f"for (long i = 0; i < n; ++i) {{ {statement(case)} }} }}"
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ to compile for the host")
    folder: Path = tmp_path_factory.mktemp("elementwise")
    source, binary = folder / "elementwise.cpp", folder / "elementwise.so"
    functions = "\n".join(map(_host_function, CASES))
    source.write_text("\n".join([HOST, HOST_FUNCTIONS, preamble(functions), functions]))
    flags = ["-std=c++17", "-O0", "-ffp-contract=off", "-fsigned-zeros", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(source), "-o", str(binary)], check=True)
    return ctypes.CDLL(str(binary))


@pytest.mark.parametrize(
    "name", [op.name for op in all_ops() if any(case.op is op for case in CASES)]
)
def test_templates_compute_what_numpy_does(name: str, library: ctypes.CDLL) -> None:
    for case in CASES:
        if case.op.name == name:
            _check_on_host(case, library)


def _check_on_host(case: Case, library: ctypes.CDLL) -> None:
    def run(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        result = result_like(case)
        spread = [np.ascontiguousarray(np.broadcast_to(x, result.shape)) for x in operands]
        addresses = (ctypes.c_void_p * len(spread))(*(x.ctypes.data for x in spread))
        function = getattr(library, f"tg_host_{case.name}")
        function(ctypes.c_long(result.size), addresses, ctypes.c_void_p(result.ctypes.data))
        return result

    check(case.op, case.sample, run)
