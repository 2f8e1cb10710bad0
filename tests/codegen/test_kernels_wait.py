"""The corpus compiles, and its kernels access no memory before they wait for their primaries.
None loses a value that it spills.

With programmatic dependent launch, a kernel may start before the kernels that it depends on have
ended. A compiler could move a load above the wait, so the machine code of a part is read. The
corpus is one unit, which NVRTC compiles twenty times faster than its programs one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen.preamble import preamble
from lowering.cuda.graph.copies import COPY_SOURCE
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import walk
from tests.corpus import CASES
from tests.emulation.front_end import assert_front_end_accepts
from tests.emulation.machine_code import instructions, lost_spills, sections
from tests.emulation.plan_emulator import common_unit
from tests.helpers.running import lowered
from tracegraph import linalg

WAIT = "ACQBULK"
MEMORY = re.compile(r"\b(LD|LDG|LDGSTS|ST|STG|ATOM|ATOMG|RED|REDG|UBLKCP|CCTL)\b")


def test_the_corpus_compiles() -> None:
    plans = [lowered(c.function, *c.arguments, device="cuda").plan for c in CASES.values()]
    assert_front_end_accepts(common_unit(plans).source)


@pytest.mark.parametrize(("architecture", "every"), [("sm_90", 12), ("sm_100", 24)])
def test_no_memory_is_touched_before_the_wait_and_no_spill_is_lost(
    architecture: str, every: int, tmp_path: Path
) -> None:
    cases = list(CASES.values())[::every]
    plans = [lowered(c.function, *c.arguments, device="cuda").plan for c in cases]
    found = dict(sections(common_unit(plans).source, architecture, tmp_path))
    assert len(found) > 240 / every
    for name, section in found.items():
        lines = instructions(section)
        waits = [number for number, line in enumerate(lines) if WAIT in line]
        assert waits, f"{name} does not wait"
        assert not list(filter(MEMORY.search, lines[: waits[0]])), name
        assert list(filter(MEMORY.search, lines[waits[0] :])), name  # which the pattern finds
        assert not lost_spills(section), name


def test_copies_wait(tmp_path: Path) -> None:
    ((_, section),) = sections(preamble(COPY_SOURCE) + COPY_SOURCE, "sm_90", tmp_path)
    lines = instructions(section)
    memory = [number for number, line in enumerate(lines) if MEMORY.search(line)]
    assert WAIT in "".join(lines[: memory[0]])


def matrices(dtype: str) -> Callable[..., Any]:
    """What kernels of ours for matrices compute: small factors, spectra, tridiagonal systems."""
    ones = np.ones((9, 700), dtype)

    def every(a: Any) -> Any:
        solved = linalg.tridiagonal_solve(ones, 4 * ones, ones, ones[..., None] * a[0, 0, 0])
        long = linalg.tridiagonal_solve(*np.ones((3, 9000), dtype), np.ones((9000, 1), dtype))
        factors = np.linalg.cholesky(a), linalg.lu_factor(a), np.linalg.solve(a, a)
        return solved, long, factors, np.linalg.eigh(a), np.linalg.svd(a)

    return every


@pytest.mark.parametrize(("dtype", "first"), [("float32", 0), ("complex128", 1)])
def test_kernels_for_matrices_wait(dtype: str, first: int, tmp_path: Path) -> None:
    types = tracegraph.ArrayType(dtype, (300, 12, 12))
    plan = lowered(matrices(dtype), types, device="cuda").plan
    texts = {n.code for n in walk(plan.graph) if isinstance(n, CustomKernelNode)}
    assert len(texts) >= 8
    for code in sorted(texts, key=lambda code: str(code.text))[first::2]:
        assert code.waits
        assert isinstance(code.text, str)
        ((name, section),) = sections(code.text, "sm_90", tmp_path)
        lines = instructions(section)
        wait = next(number for number, line in enumerate(lines) if WAIT in line)
        assert not list(filter(MEMORY.search, lines[:wait])), name
        assert list(filter(MEMORY.search, lines[wait:])), name
        assert not lost_spills(section), name
