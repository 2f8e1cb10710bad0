"""The library becomes machine code for every system, and vector code for the machine at hand."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="there is no wheel of llvmlite for this system")

import llvmlite.binding as llvm

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.native.library import load
from lowering.native.library.symbols import Function, elementwise
from tests.unit.native.library.compiled_functions import Compiled
from tracegraph.ir.op import get

FEATURES = {"x86_64": "+avx2,+fma,+f16c,+bmi,+bmi2,+popcnt,+lzcnt", "aarch64": "", "arm64": ""}
TARGETS = [
    *("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-apple-macosx"),
    *("arm64-apple-macosx", "x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"),
]
CHOSEN = re.compile(
    r"tgo_(?:exp|sin|power|gamma|j0|fmod|cast|add|floor_divide|gammainc|tanh|threefry|gcd)_\w*"
)
"""Functions of every kind: of 16-bit floats and complex numbers; with tables, loops and calls."""


def compiled_for(triple: str, names: Iterable[str]) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """A module that exports functions, and the machine of a system."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = load.definitions(names).module()
    exported = re.sub(r"^define internal ", "define ", module, flags=re.MULTILINE)
    parsed = llvm.parse_assembly(f'target triple = "{triple}"\n{exported}')
    machine = llvm.Target.from_triple(triple).create_target_machine(
        features=FEATURES[triple.split("-")[0]], opt=2, reloc="pic", codemodel="small"
    )
    parsed.data_layout = str(machine.target_data)
    return parsed, machine


@pytest.mark.parametrize("triple", TARGETS)
def test_every_system_gets_machine_code(triple: str) -> None:
    """Made, not run."""
    names = [name for name in load.names() if CHOSEN.fullmatch(name)]
    assert len(names) > 250
    module, machine = compiled_for(triple, names)
    assert len(machine.emit_object(module)) > 50_000


@pytest.mark.parametrize("triple", TARGETS[:2])
def test_machine_code_calls_nothing_outside(triple: str) -> None:
    """No function becomes a call of a C library, or of the compiler's own."""
    module, machine = compiled_for(triple, load.names())
    assembly = machine.emit_assembly(module)
    labels = set(re.findall(r"^([\w.$]+):", assembly, re.MULTILINE))
    called = re.findall(
        r"\s(?:callq?|jmp|bl|b)\s+([A-Za-z_][\w.$]*)(?:@PLT)?$", assembly, re.MULTILINE
    )
    assert len(called) > 200
    assert set(called) - labels <= {"memcpy", "memset"}


VECTORIZED = [
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "arctan"),
    *("arcsin", "arccos", "arcsinh", "arccosh", "arctanh", "cbrt", "sqrt", "erf", "erfc", "ndtr"),
    *("erfcx", "gamma", "i0", "expit", "erfinv", "ndtri"),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_loops_are_vectorized(dtype: type) -> None:
    number = np.dtype(dtype)
    tried = [elementwise(get(name), {}, [number], number) for name in VECTORIZED]
    tried += [
        elementwise(get(name), {}, [number] * 2, number) for name in ("power", "arctan2", "hypot")
    ]
    for name in ("sin", "cos", "tan"):
        exact = elementwise(get(name), {}, [number], number)
        assert exact is not None
        assert exact.fast is not None
        tried.append(Function(exact.fast[0], number, (number,), exact.text))
    for function in tried:
        assert function is not None
        text = Compiled([function]).text
        body = text[text.index("@loop_0(") :]
        assert re.search(r"store <\d+ x \w+>", body), function.name


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_results_do_not_depend_on_the_width_of_vectors(dtype: type) -> None:
    """The same bits without vectors and with them, and on x86 with those of AVX2."""
    number = np.dtype(dtype)
    found = [elementwise(get(name), {}, [number], number) for name in VECTORIZED]
    tried = [function for function in found if function is not None]
    random = np.random.default_rng(7)
    x = np.concatenate([random.uniform(-9, 9, 500), np.exp2(random.uniform(-99, 99, 505))])
    x = random.permutation(x).astype(number)
    ways = [Compiled(tried, speed=0), Compiled(tried)]
    if platform.machine() in {"x86_64", "AMD64"}:
        ways.append(Compiled(tried, cpu="x86-64-v3"))
    for place, function in enumerate(tried):
        first, *others = (np.nan_to_num(way(place, x)).tobytes() for way in ways)
        assert all(other == first for other in others), function.name
