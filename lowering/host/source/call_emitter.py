"""Code generation for a nest: each instruction of its program becomes a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import (
    Condition,
    Instruction,
    NumpyValue,
    Temporary,
    UfuncMethod,
)
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.source.array_names import Frame

OUT_BY_NAME = (np.maximum, np.minimum)
"""Ufuncs that take `out` by keyword only: a positional one is deprecated."""


class NestWriter:
    """Writes the lines that run a nest."""

    def __init__(self, program: NestProgram, frame: Frame, workspace: Array) -> None:
        self._program = program
        self._frame = frame
        self._source = frame.source
        self._workspace = workspace
        self._temporaries: dict[Temporary, str] = {}

    def write(self) -> None:
        """Write the lines of all instructions."""
        for instruction in self._program.instructions:
            self._write_call(instruction)

    def _write_call(self, instruction: Instruction) -> None:
        names = [self._name(value) for value in instruction.inputs]
        if instruction.kind == "assign":
            for value in instruction.inputs:
                self._frame.read_directly(value)
        output = instruction.output
        if isinstance(output, Condition):
            value = self._frame.number(instruction.inputs[0], names[0])
            self._source.line(f"{self._frame.name(output)} = {value}")
            return
        call = f"{self._source.name(instruction.function)}({', '.join(names)})"
        if output is None:
            self._source.line(call)
            return
        out = self._name(output)
        if instruction.kind == "assign":
            self._source.line(f"{out} = {call}")
        else:
            self._write_filling(instruction.function, names, out)

    def _write_filling(
        self, function: Callable[..., Any] | UfuncMethod, names: list[str], out: str
    ) -> None:
        text = self._filling_text(function, names, out)
        arrays = self._frame.arrays((*names, out))
        if arrays and _takes_output_last(function):
            self._source.call(text, function, *arrays)
        else:
            self._source.line(text)

    def _filling_text(
        self, function: Callable[..., Any] | UfuncMethod, names: Sequence[str], out: str
    ) -> str:
        """The call that fills `out`; an assignment or a method call where Python has one."""
        operands = ", ".join(names)
        if function is numpy_calls.store:
            return f"{out}[...] = {operands}"
        name = self._source.name
        if isinstance(function, UfuncMethod):
            before, after = (
                "".join(f", {self._source.value(x)}" for x in arguments)
                for arguments in (function.before, function.after)
            )
            return f"{name(function.ufunc)}.{function.name}({operands}{before}, {out}{after})"
        if function in OUT_BY_NAME:
            return f"{name(function)}({operands}, out={out})"
        return f"{name(function)}({', '.join((*names, out))})"

    def _name(self, value: NumpyValue) -> str:
        if not isinstance(value, Temporary):
            return self._frame.name(value)
        if value not in self._temporaries:
            start = self._program.starts[value]
            array: Array = np.ndarray(value.shape, value.dtype, self._workspace, start)
            self._temporaries[value] = self._frame.fixed(array)
        return self._temporaries[value]


def _takes_output_last(
    function: Callable[..., Any] | UfuncMethod,
) -> TypeGuard[Callable[..., Any]]:
    """Whether it takes the output as its last positional argument."""
    return not isinstance(function, UfuncMethod) and function not in OUT_BY_NAME
