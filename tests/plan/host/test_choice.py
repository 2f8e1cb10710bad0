"""What runs plans on the CPU, and what happens where native code cannot."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import numpy as np
import pytest

import tracegraph
from lowering.host import choice
from tests.helpers.processes import end_of


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is asked for, and what is found out is forgotten."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    choice.why_not_native.cache_clear()
    yield
    choice.why_not_native.cache_clear()


def test_native_code_runs_where_it_can(unset: None) -> None:
    pytest.importorskip("llvmlite")
    assert (choice.chosen_kind(), choice.why_interpreted()) == ("native", "")


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choice.VARIABLE, "fast")
    with pytest.raises(ValueError, match="TRACEGRAPH_HOST is 'fast'; it takes 'plain'"):
        choice.chosen_kind()


def test_native_code_that_is_asked_for_and_cannot_run_is_an_error(
    unset: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llvmlite.binding.llvm_version_info", (15, 0, 7))
    monkeypatch.setenv(choice.VARIABLE, "native")
    with pytest.raises(RuntimeError, match="TRACEGRAPH_HOST is 'native', but llvmlite has LLVM 15"):
        choice.chosen_kind()


def test_the_interpreter_can_be_asked_for(unset: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choice.VARIABLE, "plain")
    reason = "TRACEGRAPH_HOST is 'plain'"
    assert (choice.chosen_kind(), choice.why_interpreted()) == ("plain", reason)
    lowered = tracegraph.jit(np.sin, device="host").lower(1.0)
    assert lowered.explain().endswith(f"interpreted, not native code: {reason}")


def test_an_old_llvm_is_not_used(unset: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llvmlite.binding.llvm_version_info", (15, 0, 7))
    assert choice.chosen_kind() == "plain"
    assert choice.why_interpreted() == (
        "llvmlite has LLVM 15, and 20 or newer is needed: update llvmlite"
    )


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="others have the instructions"
)
def test_old_processors_interpret(unset: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: {"sse2": True})
    assert choice.chosen_kind() == "plain"
    assert choice.why_interpreted() == "the processor lacks the instructions fma, f16c"


HIDDEN = """
import sys
sys.modules["llvmlite"] = None  # as if it were not installed
import warnings
warnings.simplefilter("error")
import numpy as np
import tracegraph
f = tracegraph.jit(lambda x: np.exp(x).sum(0), device="host")
print(f.lower(np.zeros((2, 3))).explain().split("\\n")[-1])
print(f(np.zeros((2, 3))))
f.warm(np.zeros((2, 3)))
assert "CUDA" in f.lower(np.zeros((2, 3))).source or "__global__" in f.lower(np.zeros(3)).source
"""


def test_without_llvmlite_plans_are_interpreted_and_only_explain_says_so() -> None:
    said = "interpreted, not native code: the package llvmlite is not installed"
    assert end_of(HIDDEN, TRACEGRAPH_HOST="") == (0, f"{said}\n[2. 2. 2.]\n", "")
