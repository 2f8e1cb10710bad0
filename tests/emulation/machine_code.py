"""Machine code: what NVRTC makes of a unit, as the disassembler lists it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from cuda.pathfinder import find_nvidia_binary_utility

from lowering.cuda.compilation.compile import cubin

INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+|\$\S+):", re.MULTILINE)
LINES = re.compile(f"{LABEL.pattern}|{INSTRUCTION.pattern}", re.MULTILINE)
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
SPILL = re.compile(r"\b(STL|LDL)(\S*)\s.*\[R1(?:\+0x([0-9a-f]+))?\]")
WIDTHS = {".64": 2, ".128": 4}


def sections(source: str, architecture: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The name of each kernel in a unit, and the listing of its code."""
    disassembler = find_nvidia_binary_utility("nvdisasm")
    assert disassembler is not None, "install tracegraph[test], which has nvidia-cuda-nvdisasm"
    code = folder / "unit.cubin"
    code.write_bytes(cubin(source, architecture).code)
    listing = subprocess.run(
        [disassembler, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    for section in re.split(r"\n\s*\.section\s+\.text\.", listing)[1:]:
        yield section.split(",", 1)[0], section


def instructions(section: str) -> list[str]:
    """The instructions of a kernel, in order."""
    return [found.group(1) for found in INSTRUCTION.finditer(section)]


def lost_spills(section: str) -> list[str]:
    """The loads of spilled values from a place that may hold another value by then.

    The last load of what is in a place is marked LDL.LU. Until a store follows, no load on any path
    may be from there.
    """
    code, labels = _lines(section)
    gone: list[frozenset[int] | None] = [None] * len(code)
    entries = [0, *(at for label, at in labels.items() if label.startswith("$"))]
    waiting = [(entry, frozenset[int]()) for entry in entries]
    lost = set()
    while waiting:
        at, before = waiting.pop()
        if at >= len(code) or (gone[at] is not None and before <= gone[at]):
            continue
        after = set(gone[at] or ()) | before
        gone[at] = frozenset(after)
        spill = SPILL.search(code[at])
        if spill:
            access, modifiers, offset = spill.groups()
            first = int(offset or "0", 16) // 4
            width = next((w for name, w in WIDTHS.items() if name in modifiers), 1)
            places = set(range(first, first + width))
            always = not code[at].startswith("@")
            if access == "LDL" and places & after:
                lost.add(at)
            if access == "LDL" and ".LU" in modifiers and always:
                after |= places
            if access == "STL" and always:
                after -= places
        waiting += [(to, frozenset(after)) for to in _next(code[at], at, labels)]
    return [code[at] for at in sorted(lost)]


def _lines(section: str) -> tuple[list[str], dict[str, int]]:
    """The instructions, and the index of the one behind each label."""
    code: list[str] = []
    labels: dict[str, int] = {}
    for line in LINES.finditer(section):
        label, instruction = line.groups()
        if label:
            labels[label] = len(code)
        else:
            code.append(instruction)
    return code, labels


def _next(instruction: str, at: int, labels: dict[str, int]) -> Sequence[int]:
    """The indices of the instructions that may follow."""
    predicated = instruction.startswith("@")
    operation = re.sub(r"^@!?U?P\w+\s+", "", instruction)
    target = TARGET.search(operation)
    if operation.startswith("BRA") and target:
        taken = labels[target.group(1)]
        always = not predicated and not re.match(r"BRA\S*\s+!?U?P\d", operation)
        return (taken,) if always else (taken, at + 1)
    ends = operation.startswith(("EXIT", "RET"))
    return () if ends and not predicated else (at + 1,)
