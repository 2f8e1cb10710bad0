"""Kernels of users compile, each in its unit, and the compiler checks what nodes pass to them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen.custom_kernels import custom_kernel_source, declaration
from lowering.cuda.compilation.compile import custom_cubin
from lowering.cuda.graph.handwritten_kernels import load_custom_kernels
from lowering.cuda.open_devices import OpenDevice
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import walk
from lowering.testing.recording_backend import RecordingDevice
from lowering.testing.recording_driver import RecordingDriver
from tests.cases.custom_kernels import Program, each_program, saxpy
from tracegraph import errors
from tracegraph.dtypes import SHORT_NAMES, bfloat16

X = np.arange(6.0)


class CompilingDevice(RecordingDevice):
    """Compiles users' kernels, and records all else."""

    compile_custom = OpenDevice.compile_custom

    def code_bytes(self, code: Any) -> int:
        return len(code.code)


def nodes(f: Any, *arguments: Any) -> list[CustomKernelNode]:
    plan = tracegraph.jit(f, device="cuda").lower(*arguments).plan
    return [node for node in walk(plan.graph) if isinstance(node, CustomKernelNode)]


def compile_call(text: str, out: Any, *arguments: Any, entry: str = "f", **options: Any) -> Any:
    """Compile the kernel of a call; the arguments are called a, b, c."""
    references = [lambda a: a, lambda a, b: a, lambda a, b, c: a]
    given = {"source": text, "entry": entry, "out": out, "grid": 1, "block": 32, **options}
    kernel = tracegraph.kernel(**given)(references[len(arguments) - 1])
    traced = [x for x in arguments if isinstance(x, np.ndarray)]
    scalars = arguments[len(traced) :]
    plan = tracegraph.jit(lambda *xs: kernel(*xs, *scalars), device="cuda").lower(*traced).plan
    return load_custom_kernels(plan, CompilingDevice(RecordingDriver()))


@each_program
def test_programs_compile(program: Program) -> None:
    for node in nodes(program.function, *program.arguments):
        assert custom_cubin(custom_kernel_source(node), "sm_90", "unit.cu").code


def test_a_text_for_several_dtypes_compiles() -> None:
    for dtype in (np.float32, np.float64):
        (node,) = nodes(lambda x: saxpy(2.0, x, x), X.astype(dtype))
        assert custom_cubin(custom_kernel_source(node), "sm_90", "unit.cu").code


TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "float16": "struct half",
    "bfloat16": "unsigned short",
    "float32": "float",
    "float64": "double",
    "complex64": "float",
    "complex128": "struct pair",
}
STRUCTS = "struct half { unsigned short bits; }; struct pair { double x, y; };\n"


@pytest.mark.parametrize("dtype", SHORT_NAMES, ids=str)
def test_pointers_and_values_of_every_dtype(dtype: np.dtype[Any]) -> None:
    name = TYPES[str(dtype)].removeprefix("struct ")
    x = np.ones(3, dtype)
    text = f'{STRUCTS}extern "C" __global__ void f(const {name}* a, {name}* y) {{}}'
    assert compile_call(text, lambda a: a, x)
    if dtype.kind != "c":
        text = f'{STRUCTS}extern "C" __global__ void f(const {name}* a, {name} b, {name}* y) {{}}'
        assert compile_call(text, lambda a, b: a, x, True, scalars={"b": dtype})


@pytest.mark.parametrize("parameter", ["float4*", "void*", "double*", "const double* __restrict__"])
def test_pointers_that_are_as_good(parameter: str) -> None:
    text = f'extern "C" __global__ void f({parameter} a, double* y) {{}}'
    assert compile_call(text, lambda a: a, X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("const double* a", "f must have 2 parameters"),
        ("const double* a, double* y, int n", "f must have 2 parameters"),
        ("const float* a, double* y", "parameter 0 of f, a, must be a pointer to f64"),
        ("const long long* a, double* y", "parameter 0 of f, a, must be a pointer to f64"),
        ("double a, double* y", "parameter 0 of f, a, must be a pointer to f64"),
        ("const double* a, float* y", "parameter 1 of f, out0, must be a pointer to f64"),
    ],
)
def test_other_parameters_are_errors_of_the_compiler(parameters: str, message: str) -> None:
    with pytest.raises(errors.KernelCompileError) as caught:
        compile_call(f'extern "C" __global__ void f({parameters}) {{}}', lambda a: a, X)
    text = str(caught.value)
    assert message in text
    assert 'extern "C" __global__ void f(const double* a, double* out0);' in text
    assert re.search(r"kernel <lambda> \(test_custom_kernels_compile\.py:\d+\) does not", text)
    assert "called at test_custom_kernels_compile.py:" in text


@pytest.mark.parametrize(
    ("parameter", "dtype"),
    [("float", "float64"), ("int", "float32"), ("unsigned", "int32"), ("int*", "int64")],
)
def test_other_values_are_errors_of_the_compiler(parameter: str, dtype: str) -> None:
    text = f'extern "C" __global__ void f(const double* a, {parameter} b, double* y) {{}}'
    short = SHORT_NAMES[np.dtype(dtype)]
    with pytest.raises(errors.KernelCompileError, match=f"parameter 1 of f, b, must be {short}"):
        compile_call(text, lambda a, b: a, X, 1, scalars={"b": dtype})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__global__ void f(const double* a, double* y) {}", "linkage specification"),
        ('extern "C" __global__ void g(const double* a, double* y) {}', '"f" is undefined'),
        ('extern "C" __global__ void f(const double* a, double* y) {\n  y[0] = b[0];\n}', "b"),
    ],
)
def test_errors_have_the_log(text: str, message: str) -> None:
    with pytest.raises(errors.KernelCompileError) as caught:
        compile_call(text, lambda a: a, X)
    assert message in str(caught.value)
    assert "<lambda>.cu(" in str(caught.value)


def test_the_log_names_the_line_of_the_text() -> None:
    text = 'extern "C" __global__ void f(const double* a, double* y) {\n  y[0] = unknown;\n}'
    with pytest.raises(errors.KernelCompileError, match=r"cu\(2\): error: .*unknown"):
        compile_call(text, lambda a: a, X)


def test_headers_of_a_folder(tmp_path: Path) -> None:
    header = tmp_path / "three.h"
    text = '#include "three.h"\nextern "C" __global__ void f(const double* a, double* y) { THREE }'
    build = partial(compile_call, text, lambda a: a, X, include_paths=[tmp_path])
    header.write_text("#define THREE y[0] = 3;")
    assert build()
    header.write_text("#error it has changed")  # nothing is kept that headers may change
    with pytest.raises(errors.KernelCompileError, match="it has changed"):
        build()


def test_a_declaration_for_the_types_of_a_call() -> None:
    kernel = tracegraph.kernel(
        source="", entry="f", out=lambda x, n, y: (y, x), grid=1, block=1,
        scalars={"n": bfloat16}, aliases={0: "y"},
    )(lambda x, n, y: (y, x))  # fmt: skip
    (node,) = nodes(lambda x, y: kernel(x, 2, y), np.ones(3, np.float16), np.ones(2, np.uint8))
    assert declaration(node) == (
        'extern "C" __global__ void f(const __half* x, __nv_bfloat16 n, unsigned char* y, '
        "__half* out1);"
    )
