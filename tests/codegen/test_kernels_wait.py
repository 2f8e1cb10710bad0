"""The corpus compiles, and its kernels access no memory before they wait for their primaries.

With programmatic dependent launch, a kernel may start before the kernels that it depends on have
ended. A compiler could move a load above the wait, so the machine code of a part is read. The
corpus is one unit, which NVRTC compiles twenty times faster than its programs one by one.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from corpus import CASES
from cuda.pathfinder import find_nvidia_binary_utility
from front_end import assert_front_end_accepts
from plan_emulator import common_unit
from running import lowered

from lowering.codegen.preamble import preamble
from lowering.cuda.compile import cubin
from lowering.cuda.graph.copies import COPY_SOURCE

WAIT = "ACQBULK"
MEMORY = re.compile(r"\b(LD|LDG|LDGSTS|ST|STG|ATOM|ATOMG|RED|REDG|UBLKCP|CCTL)\b")


def instructions(source: str, architecture: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The name of each kernel in a unit, and what it is compiled to, in order."""
    disassembler = find_nvidia_binary_utility("nvdisasm")
    assert disassembler is not None, "install tracegraph[test], which has nvidia-cuda-nvdisasm"
    code = folder / "unit.cubin"
    code.write_bytes(cubin(source, architecture).code)
    listing = subprocess.run(
        [disassembler, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    for section in re.split(r"\n\s*\.section\s+\.text\.", listing)[1:]:
        name = section.split(",", 1)[0]
        yield name, re.findall(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", section)


def test_the_corpus_compiles() -> None:
    plans = [lowered(c.function, *c.arguments, device="cuda").plan for c in CASES.values()]
    assert_front_end_accepts(common_unit(plans).source)


@pytest.mark.parametrize(("architecture", "every"), [("sm_90", 4), ("sm_100", 8)])
def test_no_memory_is_touched_before_the_wait(
    architecture: str, every: int, tmp_path: Path
) -> None:
    cases = list(CASES.values())[::every]
    plans = [lowered(c.function, *c.arguments, device="cuda").plan for c in cases]
    found = dict(instructions(common_unit(plans).source, architecture, tmp_path))
    assert len(found) > 300 / every
    for name, lines in found.items():
        waits = [number for number, line in enumerate(lines) if WAIT in line]
        assert waits, f"{name} does not wait"
        assert not list(filter(MEMORY.search, lines[: waits[0]])), name
        assert list(filter(MEMORY.search, lines[waits[0] :])), name  # which the pattern finds


def test_copies_wait(tmp_path: Path) -> None:
    ((_, lines),) = instructions(preamble(COPY_SOURCE) + COPY_SOURCE, "sm_90", tmp_path)
    memory = [number for number, line in enumerate(lines) if MEMORY.search(line)]
    assert WAIT in "".join(lines[: memory[0]])
