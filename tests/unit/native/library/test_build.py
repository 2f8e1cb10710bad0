"""The library in the repository is what clang makes of the sources, and is bound to no system."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from lowering.native.library import load
from lowering.native.library.build import TARGET, VERSION, tool
from lowering.native.library.symbols import FAST_FORMS

ROOT = Path(__file__).parents[4]


@cache
def text() -> str:
    return TARGET.read_text(encoding="utf-8")


def in_new_process(script: str) -> str:
    """What a script prints. A new process has no ops that tests register."""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.skipif(
    tool("clang") is None or tool("opt") is None,
    reason=f"clang {VERSION} and its opt make the library; they are not installed",
)
def test_the_library_is_up_to_date() -> None:
    made = in_new_process("from lowering.native.library.build import build; print(build(), end='')")
    assert made == text(), "run python -m lowering.native.library.build"


def test_the_library_has_every_function_and_no_other() -> None:
    script = (
        "from lowering.native.library.source import functions\n"
        "print(*(name for f in functions() for name in (f.name, *(f.fast or ()))))"
    )
    assert load.names() == set(in_new_process(script).split())


@pytest.mark.parametrize(
    "word", ["target ", "comdat", "target-cpu", "no-builtins", "reassoc", "contract", "fast "]
)
def test_nothing_names_a_system_or_loosens_arithmetic(word: str) -> None:
    assert word not in re.sub(r"^@\S+:$|@[\w.$]+", "", text(), flags=re.MULTILINE)


def test_nothing_outside_is_called() -> None:
    """No C library: only intrinsic functions are declared, and those are instructions."""
    declared = re.findall(r"^declare [^@]*@([\w.]+)", text(), re.MULTILINE)
    instructions = (
        *("abs", "ceil", "copysign", "ctpop", "fabs", "floor", "fma", "fptosi", "fptoui", "fshl"),
        *("is", "memcpy", "memset", "rint", "smax", "smin", "sqrt", "trunc", "umax", "umin"),
    )
    assert {name.split(".")[1] for name in declared if name.startswith("llvm.")} <= {*instructions}
    assert [name for name in declared if not name.startswith("llvm.")] == []


def test_definitions_are_internal() -> None:
    heads = re.findall(r"^define .*", text(), re.MULTILINE)
    assert len(heads) > 1400
    assert all(head.startswith("define internal ") for head in heads)


def test_fast_forms_call_nothing_slow() -> None:
    fast = [name for name in load.names() if name.endswith("__fast")]
    assert len(fast) == 4 * len(FAST_FORMS)
    for name in fast:
        assert "tgm_far" not in load.definitions([name]).text


def test_a_module_is_joined_with_what_it_calls() -> None:
    module = "\n".join(
        [
            "declare double @tgo_exp_f64__f64(double)",
            "declare double @llvm.fma.f64(double, double, double)",
            "define double @run(double %x) {",
            "  %y = call double @tgo_exp_f64__f64(double %x)",
            "  ret double %y",
            "}",
        ]
    )
    joined = load.joined(module, ["tgo_exp_f64__f64"])
    assert joined.count("@llvm.fma.f64(double, double, double)\n") == 1
    assert "declare double @tgo_exp_f64__f64" not in joined
    assert "define internal double @tgo_exp_f64__f64" in joined
