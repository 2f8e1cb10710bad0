"""From a schedule to lines: its registers get names, and blocks are cut from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np

from lowering.host import numpy_calls as functions
from lowering.host.arena import Array
from lowering.host.array_names import Frame
from lowering.host.instructions import (
    Condition,
    Instruction,
    Method,
    NumpyValue,
    ReversedTemporary,
    Temporary,
)
from lowering.host.python_source import Source
from lowering.host.tuning.passes import Schedule, block_shape
from lowering.host.tuning.scalar_calls import is_number, scalar_lines, scalar_value
from lowering.host.tuning.wrapped_loads import PieceCopy

_BY_NAME = (np.maximum, np.minimum)
"""They take `out` by name only."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """The part of an array that the current block sees; that of a temporary begins at 0."""

    source: str
    variable: str
    lead: int
    local: bool


def write_nest(
    schedule: Schedule, frame: Frame, workspace: Array, allocating: Container[Instruction]
) -> None:
    """Write the lines that run a nest; of some instructions, the result is the output."""
    _Binder(schedule, frame, workspace, allocating).write()


class _Binder:
    def __init__(
        self,
        schedule: Schedule,
        frame: Frame,
        workspace: Array,
        allocating: Container[Instruction],
    ) -> None:
        self._allocating = allocating
        self._schedule = schedule
        self._frame = frame
        self._source = frame.source
        self._workspace = workspace
        self._temporaries: dict[Temporary | ReversedTemporary, str] = {}
        self._cuts: dict[NumpyValue, _Cut] = {}
        # What a block makes anew has the extent of the block already.
        self._uncut = {i.output for i in schedule.each if i.kind == "assign"}
        self._tested = _only_tested(schedule.each)
        self._told: dict[NumpyValue, str] = {}  # values of these, as expressions

    def write(self) -> None:
        schedule = self._schedule
        for each in schedule.before:
            self._write(each, whole=True)
        if schedule.axis is None:
            for each in schedule.each:
                self._write(each, whole=False)
            return
        for each in schedule.each:
            for register in (*each.inputs, each.output):
                if register is not None:
                    self._name(register, whole=False)
        cuts = tuple(self._cuts.values())
        blocks = self._source.name(_blocks(schedule, cuts))
        indices = {(cut.lead, cut.local): f"i{cut.lead}{'ab'[cut.local]}" for cut in cuts}
        with self._source.block(f"for {', '.join(indices.values())}, in {blocks}:"):
            for cut in cuts:
                part = indices[cut.lead, cut.local]
                self._source.line(f"{cut.variable} = {cut.source}[{part}]")
            for each in schedule.each:
                self._write(each, whole=False)

    def _write(self, instruction: Instruction, whole: bool) -> None:
        function, output = instruction.function, instruction.output
        names = [self._name(register, whole) for register in instruction.inputs]
        if instruction.kind == "assign":
            for register in instruction.inputs:
                self._frame.read_directly(register)
        if isinstance(output, Condition):
            value = self._told.pop(instruction.inputs[0], None)
            if value is None:
                value = self._frame.number(instruction.inputs[0], names[0])
            self._source.line(f"{self._frame.name(output)} = {value}")
            return
        if output in self._tested and isinstance(output, Temporary):
            value = scalar_value(instruction, self._frame, names)
            if value is not None:
                self._told[output] = value
                return
        call = f"{self._source.name(function)}({', '.join(names)})"
        if output is None:
            self._source.line(call)
            return
        out = self._name(output, whole)
        if instruction in self._allocating and function is functions.store:
            call = f"{names[0]}.copy()"
        elif instruction in self._allocating and len(output.shape) > 1:  # one axis has one order
            call = f'{call[:-1]}, order="C")'
        if instruction.kind == "assign" or instruction in self._allocating:
            self._source.line(f"{out} = {call}")
            return
        if isinstance(function, PieceCopy):
            self._write_pieces(function, names, out)
            return
        exact = _written(self._source, function, names, out)
        lines = scalar_lines(instruction, self._frame, names, out, exact)
        arrays = self._frame.arrays((*names, out))
        if lines:
            for line in lines:
                self._source.line(line)
        elif function is functions.store:
            self._write_copy(names[0], out)
        elif arrays and _is_plain(function):
            self._source.call(exact, function, *arrays)
        else:
            self._source.line(exact)

    def _write_copy(self, name: str, out: str) -> None:
        """A line that copies an array to another."""
        text, arrays = f"{out}[...] = {name}", self._frame.arrays((name, out))
        if not arrays:
            self._source.line(text)
        elif functions.is_slow_to_store(*arrays):
            value, target = map(functions.bits, arrays)
            same, there = self._frame.fixed(value), self._frame.fixed(target)
            text = f"{self._source.name(np.bitwise_or)}({same}, {same}, {there})"
            self._source.call(text, np.bitwise_or, value, value, target)
        else:
            self._source.call(text, functions.store, *arrays)

    def _write_pieces(self, joined: PieceCopy, names: Sequence[str], out: str) -> None:
        """A line for each piece. The places in an array that never moves are known now."""
        known = self._frame.arrays((out,))
        for number, name in enumerate(names):
            if not known:
                self._source.line(f"{joined.place_text(number, out, self._source)} = {name}")
                continue
            place = joined.place(number, *known)
            if place.size == 1 and is_number(place.dtype):
                self._write_number(name, place)
                continue
            self._write_copy(name, self._frame.fixed(place))

    def _write_number(self, name: str, place: Array) -> None:
        """A line that copies the one element of an array."""
        for array in self._frame.arrays((name,)):
            name = self._frame.fixed(array.reshape(()))
        target = self._frame.place(self._frame.fixed(place.reshape(())))
        self._source.line(f"{target} = {self._frame.element(name)}")

    def _name(self, register: NumpyValue, whole: bool) -> str:
        axis = self._schedule.axis
        if whole or axis is None or axis not in register.dims or register in self._uncut:
            return self._whole_name(register)
        if register not in self._cuts:
            local = isinstance(register, Temporary | ReversedTemporary)
            source = self._whole_name(register)
            variable = self._source.variable()
            self._cuts[register] = _Cut(source, variable, register.dims[axis], local)
        return self._cuts[register].variable

    def _whole_name(self, register: NumpyValue) -> str:
        if not isinstance(register, Temporary | ReversedTemporary):
            return self._frame.name(register)
        if register not in self._temporaries:
            base = register.base if isinstance(register, ReversedTemporary) else register
            shape = block_shape(base, self._schedule.axis, self._schedule.length)
            array = _laid_out(shape, base, self._workspace, self._schedule.starts[base])
            if isinstance(register, ReversedTemporary):
                array = np.flip(array, tuple(register.along))
            self._temporaries[register] = self._frame.fixed(array)
        return self._temporaries[register]


def _only_tested(instructions: Sequence[Instruction]) -> set[NumpyValue | None]:
    """What nothing but the next instruction reads, as a condition."""
    readers = Counter(register for each in instructions for register in set(each.inputs))
    return {
        made.output
        for made, tested in pairwise(instructions)
        if isinstance(tested.output, Condition)
        and tested.inputs == (made.output,)
        and readers[tested.inputs[0]] == 1
    }


def _laid_out(shape: tuple[int, ...], register: Temporary, workspace: Array, start: int) -> Array:
    """The array of a temporary: its elements are next to each other in the order of memory."""
    if register.order is None:
        return np.ndarray(shape, register.dtype, workspace, start)
    ordered = tuple(shape[dim] for dim in register.order)
    array: Array = np.ndarray(ordered, register.dtype, workspace, start)
    return array.transpose(np.argsort(register.order))


def _is_plain(function: Callable[..., Any] | Method) -> TypeGuard[Callable[..., Any]]:
    """Whether it takes the output as its last argument."""
    return not isinstance(function, Method) and function not in _BY_NAME


def _written(
    source: Source, function: Callable[..., Any] | Method, names: Sequence[str], out: str
) -> str:
    """What fills `out`, as one would write it by hand where there is such a way."""
    operands = ", ".join(names)
    if function is functions.store:
        return f"{out}[...] = {operands}"
    if isinstance(function, Method):
        before, after = (
            "".join(f", {source.value(x)}" for x in arguments)
            for arguments in (function.before, function.after)
        )
        return f"{source.name(function.ufunc)}.{function.name}({operands}{before}, {out}{after})"
    if function in _BY_NAME:
        return f"{source.name(function)}({operands}, out={out})"
    return f"{source.name(function)}({operands}, {out})"


def _blocks(schedule: Schedule, cuts: Sequence[_Cut]) -> Sequence[tuple[tuple[slice, ...], ...]]:
    """For every block, the index of each kind of cut."""
    kinds = dict.fromkeys((cut.lead, cut.local) for cut in cuts)
    blocks = []
    for start in range(0, schedule.extent, schedule.length):
        stop = min(start + schedule.length, schedule.extent)
        part = {False: slice(start, stop), True: slice(0, stop - start)}
        blocks.append(tuple((*(slice(None),) * lead, part[local]) for lead, local in kinds))
    return blocks
