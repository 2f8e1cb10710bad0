"""A plugin of pytest: every Program that a test lowers goes through a file first.

    pytest -p tests.round_trips tests/unit/control

At the end it says which share of the programs could be saved; tests fail as they do without it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import tracegraph
from tracegraph.errors import UnsavableError
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import DeclaredOp
from tracegraph.ir.program import Eqn, Program, walk
from tracegraph.saving.entries import SavedProgram
from tracegraph.saving.functions.portable import portable
from tracegraph.saving.functions.records import Record, record_of
from tracegraph.saving.packing import file_of
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.stages import Traced

CALLBACKS = {"debug_callback", "host_call", "pure_callback", "embedded_graph"}
"""Ops that call Python, or what others have built."""

counts: Counter[str] = Counter()
reasons: Counter[str] = Counter()
sizes: list[int] = []


def through_a_file(program: Program) -> Program:
    """The program as a file gives it back; itself if none can hold it, or not all for the host."""
    counts["all"] += 1
    try:
        held = portable(program, order=1)
        data = _file(held)
    except Exception as error:
        calls = any(eqn.op.name in CALLBACKS for eqn in walk(program.body))
        counts["of callbacks"] += calls
        reasons[f"{'(callback) ' if calls else ''}{_cause(error)}"] += 1
        return program
    counts["saved"] += 1
    sizes.append(len(data))
    (loaded,) = tracegraph.load(data).programs
    assert _file(loaded) == data
    records = [record for eqn in walk(loaded.body) if (record := _record(eqn)) is not None]
    counts["with functions of users"] += bool(records)
    if any(record.function.program is None for record in records):
        counts["of these for GPUs alone"] += 1
        return program
    return loaded


def _file(program: Program) -> bytes:
    arguments = {"tuple": [{"tuple": ["*"] * len(program.in_types)}, {"dict": []}]}
    result = {"tuple": ["*"] * len(program.out_types)}
    signature = Signature("program", (), "args", frozenset(), frozenset())
    entry = SavedProgram(program, program.in_types, arguments, result)
    return file_of("program", signature, [entry])


def _record(eqn: Eqn) -> Record | None:
    if isinstance(eqn.op, DeclaredOp):
        return record_of(eqn.op)
    call = eqn.attrs.get("call")
    return record_of(call) if isinstance(call, KernelCall) else None


def _cause(error: Exception) -> str:
    text = str(error)
    return (
        text.partition("cannot be saved: ")[2][:60] if isinstance(error, UnsavableError) else text
    )


def pytest_configure(config: pytest.Config) -> None:
    prepared: Any = Traced._prepared

    def through(self: Traced) -> Any:
        program, sharding = prepared(self)
        return through_a_file(program), sharding

    Traced._prepared = through  # type: ignore[method-assign]
    # what is exported in a test does not go through a file before that
    Traced.optimized = property(lambda self: prepared(self)[0])  # type: ignore[assignment]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    other = counts["all"] - counts["of callbacks"]
    write = terminalreporter.write_line
    write(f"programs: {counts['all']}, of callbacks {counts['of callbacks']}")
    if other:
        write(f"saved: {counts['saved']} of {other} others, {counts['saved'] / other:.1%}")
        for what in ("with functions of users", "of these for GPUs alone"):
            write(f"{what}: {counts[what]}")
    if sizes:
        write(f"bytes: median {sorted(sizes)[len(sizes) // 2]}, most {max(sizes)}")
    for reason, count in reasons.most_common(12):
        write(f"  {count} {reason}")
