"""Records as JSON.

    Functions := [Record…]                 programs in it call functions with smaller numbers
    Record    := {"kind", name of a field: attribute | Traced | Rule}
    Traced    := {"program": Program, "constants": [name of an entry…], "zeros"?: [bool…]}
               | {"fault": text}
    Rule      := null | "reference" | {"rule": [Traced | -1 | 0 | 1…]}

Attributes are as in programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tracegraph.ir.program import Program
from tracegraph.ir.stored.attributes import to_json
from tracegraph.ir.stored.writing import program_to_json
from tracegraph.saving.functions.records import (
    ElementwiseRecord,
    FoldRecord,
    FunctionProgram,
    KernelRecord,
    Made,
    Record,
    record_of,
)

KINDS: Mapping[str, type] = {
    "elementwise": ElementwiseRecord,
    "fold": FoldRecord,
    "kernel": KernelRecord,
}

Constants = Callable[[Program], Sequence[str]]
"""Stores the constants of a program in entries of the file, and names these."""


def nowhere(program: Program) -> Sequence[str]:
    """Where constants are stored if only the functions are asked for."""
    return ()


class FunctionsWriter:
    """The functions of a file that are written so far, each once."""

    def __init__(self, constants: Constants = nowhere) -> None:
        self.documents: list[Any] = []
        self.labels: list[str] = []
        self.faults: dict[str, str] = {}
        """Labels of functions that run on GPUs alone, with why there is no program of them."""
        self._constants = constants
        self._numbers: dict[Record, int] = {}

    def number(self, made: Made) -> int | None:
        """The number of a function, which is written if it is new; None if it has no record."""
        record = record_of(made)
        if record is None:
            return None
        if record not in self._numbers:
            kind = next(name for name, cls in KINDS.items() if type(record) is cls)
            values = {field.name: getattr(record, field.name) for field in fields(record)}
            written = {name: self._value(value) for name, value in values.items()}
            self._numbers[record] = len(self.documents)
            self.documents.append({"kind": kind, **written})
            label = f"{kind} {record.where}"
            if label not in self.labels:  # a function has a record for each type and order
                self.labels.append(label)
            if record.function.program is None:
                self.faults.setdefault(label, record.function.fault)
        return self._numbers[record]

    def _value(self, value: Any) -> Any:
        if isinstance(value, FunctionProgram):
            return self._traced(value)
        if isinstance(value, tuple) and any(isinstance(each, FunctionProgram) for each in value):
            return {"rule": [self._value(each) for each in value]}
        return to_json(value)

    def _traced(self, traced: FunctionProgram) -> Any:
        program = traced.program
        if program is None:
            return {"fault": traced.fault}
        written: dict[str, Any] = {
            "program": program_to_json(program, self.number),
            "constants": list(self._constants(program)),
        }
        if traced.zeros:
            written["zeros"] = list(traced.zeros)
        return written
