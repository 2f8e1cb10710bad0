"""Loops around functions of the library, compiled for the machine at hand, as NumPy functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from lowering.native.library import load
from lowering.native.library.symbols import Function, by_address, parameter
from tracegraph.dtypes import BOOL

DType = np.dtype[Any]


def memory_type(dtype: DType) -> str:
    """The LLVM type of an element of an array."""
    if by_address(dtype):
        return f"[2 x {'float' if dtype.itemsize == 8 else 'double'}]"
    return "i8" if dtype == BOOL else parameter(dtype)[0]


def loop(function: Function, name: str) -> str:
    """A function of pointers to the result and the operands, and of the number of elements."""
    pointers = [f"ptr noalias %p{n}" for n in range(len(function.arguments))]
    lines = [
        f"define void @{name}(ptr noalias %out, {', '.join(pointers)}, i64 %count) {{",
        "entry:",
        "  br label %head",
        "head:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %i, %count",
        "  br i1 %more, label %body, label %end",
        "body:",
    ]
    operands = []
    for n, dtype in enumerate(function.arguments):
        type_ = memory_type(dtype)
        lines.append(f"  %e{n} = getelementptr {type_}, ptr %p{n}, i64 %i")
        if by_address(dtype):
            operands.append(f"ptr %e{n}")
            continue
        lines.append(f"  %l{n} = load {type_}, ptr %e{n}")
        if dtype == BOOL:
            lines.append(f"  %x{n} = icmp ne i8 %l{n}, 0")
        value = f"%{'x' if dtype == BOOL else 'l'}{n}"
        operands.append(f"{' '.join(parameter(dtype)).strip()} {value}")
    out = memory_type(function.result)
    lines.append(f"  %o = getelementptr {out}, ptr %out, i64 %i")
    if by_address(function.result):
        lines.append(f"  call void @{function.name}({', '.join(['ptr %o', *operands])})")
    else:
        type_, extension = parameter(function.result)
        lines.append(f"  %r = call {extension} {type_} @{function.name}({', '.join(operands)})")
        if function.result == BOOL:
            lines.append("  %b = zext i1 %r to i8")
        lines.append(f"  store {out} %{'b' if function.result == BOOL else 'r'}, ptr %o")
    lines += ["  %next = add nuw nsw i64 %i, 1", "  br label %head", "end:", "  ret void", "}"]
    return "\n".join(lines)


class Compiled:
    """Machine code of loops around functions."""

    def __init__(
        self, functions: Sequence[Function], speed: int = 2, cpu: str | None = None
    ) -> None:
        self._functions = list(functions)
        needed = load.definitions(function.name for function in functions)
        loops = (loop(function, f"loop_{n}") for n, function in enumerate(functions))
        module = llvm.parse_assembly("\n".join((needed.module(), *loops)))
        module.verify()
        machine = target_machine(cpu)
        options = llvm.create_pipeline_tuning_options(speed_level=speed)
        options.loop_vectorization = speed > 0
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        self.text = str(module)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def __call__(self, number: int, *operands: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The results of a function for arrays of one shape."""
        function = self._functions[number]
        arrays = [
            np.ascontiguousarray(x, dtype)
            for x, dtype in zip(operands, function.arguments, strict=True)
        ]
        out = np.empty(arrays[0].shape, function.result)
        self.run(number, out, *arrays)
        return out

    def run(self, number: int, out: np.ndarray[Any, Any], *arrays: np.ndarray[Any, Any]) -> None:
        """Fill `out`; all arrays are contiguous and of the function's dtypes."""
        address = self._engine.get_function_address(f"loop_{number}")
        types = [ctypes.c_void_p] * (len(arrays) + 1) + [ctypes.c_int64]
        ctypes.CFUNCTYPE(None, *types)(address)(
            out.ctypes.data, *(x.ctypes.data for x in arrays), out.size
        )


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def target_machine(cpu: str | None) -> llvm.TargetMachine:
    """The machine at hand, or one with less that it can run as. Each module needs its own."""
    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(),
        features="" if cpu else llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        jit=True,
        codemodel="small",
    )
