"""A plugin of pytest: every Program that a test lowers goes through a file first.

    pytest -p tests.round_trips tests/unit/control

At the end it says which share of the programs could be saved; tests fail as they do without it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tracegraph.errors import UnsavableError
from tracegraph.ir.program import Program, walk
from tracegraph.ir.stored.reading import program_from_json
from tracegraph.ir.stored.writing import program_key, program_to_json, text_of
from tracegraph.staging.stages import Traced

CALLBACKS = {"debug_callback", "host_call", "pure_callback", "embedded_graph"}
"""Ops that call Python, or what others have built."""

counts: Counter[str] = Counter()
reasons: Counter[str] = Counter()
sizes: list[int] = []


def through_a_file(program: Program) -> Program:
    """The program as a file gives it back; itself if none can hold it."""
    counts["all"] += 1
    try:
        text = text_of(program_to_json(program))
    except Exception as error:
        calls = any(eqn.op.name in CALLBACKS for eqn in walk(program.body))
        counts["of callbacks"] += calls
        reasons[f"{'(callback) ' if calls else ''}{_cause(error)}"] += 1
        return program
    loaded = program_from_json(json.loads(text), program.constants)
    assert program_key(loaded)[0] == program_key(program)[0]
    counts["saved"] += 1
    sizes.append(len(text))
    return loaded


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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    other = counts["all"] - counts["of callbacks"]
    write = terminalreporter.write_line
    write(f"programs: {counts['all']}, of callbacks {counts['of callbacks']}")
    if other:
        write(f"saved: {counts['saved']} of {other} others, {counts['saved'] / other:.1%}")
    if sizes:
        write(f"bytes: median {sorted(sizes)[len(sizes) // 2]}, most {max(sizes)}")
    for reason, count in reasons.most_common(12):
        write(f"  {count} {reason}")
