"""Cheaper forms of calls: scalars by Python, results by the call that fills them, and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import (
    Condition,
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
)
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.source.array_names import Frame
from lowering.host.source.call_emitter import NestWriter
from lowering.host.tuning.calls.array_expressions import TunedFrame
from lowering.host.tuning.calls.page_aliasing import bits, is_aliased
from lowering.host.tuning.calls.scalar_calls import is_number, scalar_lines, scalar_value
from lowering.host.tuning.expressions.wrapped_loads import PieceCopy
from lowering.host.tuning.instructions.blocking import BlockedProgram


@dataclass(frozen=True, slots=True)
class _Cut:
    """The part of an array that the current block uses; that of a temporary starts at 0."""

    source: str
    variable: str
    lead: int
    local: bool


class TunedWriter(NestWriter):
    """Writes the lines that run a nest, in the cheapest form of each call."""

    frame: TunedFrame

    def __init__(
        self,
        program: NestProgram,
        frame: Frame,
        workspace: Array,
        allocating: Container[Instruction] = (),
    ) -> None:
        assert isinstance(frame, TunedFrame), "the passes on names and on calls go together"
        super().__init__(program, frame, workspace, allocating)
        self._loop = program if isinstance(program, BlockedProgram) else None
        self._axis: int | None = None  # that of the blocks, while their lines are written
        self._cuts: dict[NumpyValue, _Cut] = {}
        each = program.instructions[self._loop.invariant if self._loop else 0 :]
        # What a block makes anew has the extent of the block already.
        self._uncut = {made.output for made in each if made.kind == "assign"}
        self._tested = _only_tested(each)
        self._inlined: dict[NumpyValue, str] = {}  # values as expressions

    def write(self) -> None:
        """Write the lines of all instructions."""
        if self._loop is None:
            super().write()
            return
        for made in self._loop.pinned:
            self.write_instruction(made)
        each = self._loop.instructions[self._loop.invariant :]
        self._axis = self._loop.axis
        for made in each:
            for value in (*made.inputs, made.output):
                if value is not None:
                    self.name(value)
        cuts = tuple(self._cuts.values())
        blocks = self.source.name(_blocks(self._loop, cuts))
        indices = {(cut.lead, cut.local): f"i{cut.lead}{'ab'[cut.local]}" for cut in cuts}
        with self.source.block(f"for {', '.join(indices.values())}, in {blocks}:"):
            for cut in cuts:
                part = indices[cut.lead, cut.local]
                self.source.line(f"{cut.variable} = {cut.source}[{part}]")
            for made in each:
                self.write_instruction(made)

    def name(self, value: NumpyValue) -> str:
        """The name of a value; within a block, that of its part."""
        if self._axis is None or self._axis not in value.dims or value in self._uncut:
            return super().name(value)
        if value not in self._cuts:
            local = isinstance(value, Temporary | ReversedTemporary)
            source, variable = super().name(value), self.source.variable()
            self._cuts[value] = _Cut(source, variable, value.dims[self._axis], local)
        return self._cuts[value].variable

    def write_call(self, instruction: Instruction, names: list[str]) -> None:
        """Write the line of an instruction on inputs of these names."""
        function, output = instruction.function, instruction.output
        if isinstance(output, Condition) and instruction.inputs[0] in self._inlined:
            value = self._inlined.pop(instruction.inputs[0])
            self.source.line(f"{self.frame.name(output)} = {value}")
            return
        if output in self._tested and isinstance(output, Temporary):
            expression = scalar_value(instruction, self.frame, names)
            if expression is not None:
                self._inlined[output] = expression
                return
        if output is None or instruction not in self.allocating:
            super().write_call(instruction, names)
            return
        call = f"{self.source.name(function)}({', '.join(names)})"
        out = self.name(output)
        if function is numpy_calls.store:
            call = f"{names[0]}.copy()"
        elif len(output.shape) > 1:  # arrays of one axis have one order
            call = f'{call[:-1]}, order="C")'
        self.source.line(f"{out} = {call}")

    def write_filling(self, instruction: Instruction, names: list[str], out: str) -> None:
        """Write the lines of an instruction that fills the array `out`."""
        function = instruction.function
        if isinstance(function, PieceCopy):
            self._write_pieces(function, names, out)
            return
        exact = self.filling_text(function, names, out)
        lines = scalar_lines(instruction, self.frame, names, out, exact)
        if lines:
            for line in lines:
                self.source.line(line)
        elif function is numpy_calls.store:
            self._write_copy(names[0], out)
        else:
            super().write_filling(instruction, names, out)

    def _write_copy(self, name: str, out: str) -> None:
        """A line that copies an array to another."""
        text, arrays = f"{out}[...] = {name}", self.frame.arrays((name, out))
        if not arrays:
            self.source.line(text)
        elif is_aliased(*arrays):
            value, target = map(bits, arrays)
            same, there = self.frame.fixed(value), self.frame.fixed(target)
            text = f"{self.source.name(np.bitwise_or)}({same}, {same}, {there})"
            self.source.call(text, np.bitwise_or, value, value, target)
        else:
            self.source.call(text, numpy_calls.store, *arrays)

    def _write_pieces(self, copy: PieceCopy, names: Sequence[str], out: str) -> None:
        """A line for each piece. The parts of an array with a fixed address are made now."""
        known = self.frame.arrays((out,))
        for number, name in enumerate(names):
            if not known:
                self.source.line(f"{copy.place_text(number, out, self.source)} = {name}")
                continue
            place = copy.place(number, *known)
            if place.size == 1 and is_number(place.dtype):
                self._write_number(name, place)
                continue
            self._write_copy(name, self.frame.fixed(place))

    def _write_number(self, name: str, place: Array) -> None:
        """A line that copies the one element of an array."""
        for array in self.frame.arrays((name,)):
            name = self.frame.fixed(array.reshape(()))
        target = self.frame.target(self.frame.fixed(place.reshape(())))
        self.source.line(f"{target} = {self.frame.element(name)}")


def _only_tested(instructions: Sequence[Instruction]) -> set[NumpyValue | None]:
    """The values that only the next instruction reads, as a condition."""
    readers = Counter(value for each in instructions for value in set(each.inputs))
    return {
        made.output
        for made, tested in pairwise(instructions)
        if isinstance(tested.output, Condition)
        and tested.inputs == (made.output,)
        and readers[tested.inputs[0]] == 1
    }


def _blocks(
    program: BlockedProgram, cuts: Sequence[_Cut]
) -> Sequence[tuple[tuple[slice, ...], ...]]:
    """For every block, the index of each kind of cut."""
    kinds = dict.fromkeys((cut.lead, cut.local) for cut in cuts)
    blocks = []
    extent = program.extents[program.axis]
    for start in range(0, extent, program.length):
        stop = min(start + program.length, extent)
        part = {False: slice(start, stop), True: slice(0, stop - start)}
        blocks.append(tuple((*(slice(None),) * lead, part[local]) for lead, local in kinds))
    return blocks
