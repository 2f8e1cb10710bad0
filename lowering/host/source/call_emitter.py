"""Code generation for a nest: each instruction of its program becomes a line."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, TypeGuard

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import (
    Condition,
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    UfuncMethod,
)
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.source.array_names import Frame

OUT_BY_NAME = (np.maximum, np.minimum)
"""Ufuncs that take `out` by keyword only: a positional one is deprecated."""


class NestWriter:
    """Writes the lines that run a nest.

    The calls of the instructions in `allocating` make a result of the plan themselves. Only tuning
    finds any.
    """

    def __init__(
        self,
        program: NestProgram,
        frame: Frame,
        workspace: Array,
        allocating: Container[Instruction] = (),
    ) -> None:
        self.program = program
        self.frame = frame
        self.source = frame.source
        self.allocating = allocating
        self._workspace = workspace
        self._temporaries: dict[Temporary | ReversedTemporary, str] = {}

    def write(self) -> None:
        """Write the lines of all instructions."""
        for instruction in self.program.instructions:
            self.write_instruction(instruction)

    def write_instruction(self, instruction: Instruction) -> None:
        """Write the line of one instruction."""
        names = [self.name(value) for value in instruction.inputs]
        if instruction.kind == "assign":
            for value in instruction.inputs:
                self.frame.read_directly(value)
        self.write_call(instruction, names)

    def write_call(self, instruction: Instruction, names: list[str]) -> None:
        """Write the line of an instruction on inputs of these names."""
        output = instruction.output
        if isinstance(output, Condition):
            value = self.frame.number(instruction.inputs[0], names[0])
            self.source.line(f"{self.frame.name(output)} = {value}")
            return
        call = f"{self.source.name(instruction.function)}({', '.join(names)})"
        if output is None:
            self.source.line(call)
            return
        out = self.name(output)
        if instruction.kind == "assign":
            self.source.line(f"{out} = {call}")
        else:
            self.write_filling(instruction, names, out)

    def write_filling(self, instruction: Instruction, names: list[str], out: str) -> None:
        """Write the line of an instruction that fills the array `out`."""
        text = self.filling_text(instruction.function, names, out)
        arrays = self.frame.arrays((*names, out))
        if arrays and _takes_output_last(instruction.function):
            self.source.call(text, instruction.function, *arrays)
        else:
            self.source.line(text)

    def filling_text(
        self, function: Callable[..., Any] | UfuncMethod, names: Sequence[str], out: str
    ) -> str:
        """The call that fills `out`; an assignment or a method call where Python has one."""
        operands = ", ".join(names)
        if function is numpy_calls.store:
            return f"{out}[...] = {operands}"
        name = self.source.name
        if isinstance(function, UfuncMethod):
            before, after = (
                "".join(f", {self.source.value(x)}" for x in arguments)
                for arguments in (function.before, function.after)
            )
            return f"{name(function.ufunc)}.{function.name}({operands}{before}, {out}{after})"
        if function in OUT_BY_NAME:
            return f"{name(function)}({operands}, out={out})"
        return f"{name(function)}({', '.join((*names, out))})"

    def name(self, value: NumpyValue) -> str:
        """The name of a value."""
        if not isinstance(value, Temporary | ReversedTemporary):
            return self.frame.name(value)
        if value not in self._temporaries:
            base = value.base if isinstance(value, ReversedTemporary) else value
            start, shape = self.program.starts[base], self.program.shape(base)
            array = _placed(shape, base, self._workspace, start)
            if isinstance(value, ReversedTemporary):
                array = np.flip(array, tuple(value.along))
            self._temporaries[value] = self.frame.fixed(array)
        return self._temporaries[value]


def _placed(shape: tuple[int, ...], value: Temporary, workspace: Array, start: int) -> Array:
    """The array of a temporary, contiguous in its memory order."""
    if value.order is None:
        return np.ndarray(shape, value.dtype, workspace, start)
    ordered = tuple(shape[dim] for dim in value.order)
    array: Array = np.ndarray(ordered, value.dtype, workspace, start)
    return array.transpose(np.argsort(value.order))


def _takes_output_last(
    function: Callable[..., Any] | UfuncMethod,
) -> TypeGuard[Callable[..., Any]]:
    """Whether it takes the output as its last positional argument."""
    return not isinstance(function, UfuncMethod) and function not in OUT_BY_NAME
