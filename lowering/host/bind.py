"""From a schedule to steps: its registers get slots of the frame, and blocks are cut from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lowering.buffer import Buffer
from lowering.host.arena import Array
from lowering.host.frame import Frame, Step
from lowering.host.registers import Instruction, Register, Temporary, View
from lowering.host.scalars import scalar_step
from lowering.host.schedule import Schedule, block_shape
from lowering.kernel import Predicate


@dataclass(frozen=True, slots=True)
class _Cut:
    """The part of an array that the current block sees; that of a temporary begins at 0."""

    source: int
    slot: int
    lead: tuple[slice, ...]
    local: bool


def nest_steps(schedule: Schedule, frame: Frame, workspace: Array) -> list[Step]:
    """The steps that run a nest, in order."""
    steps = _Binder(schedule, frame, workspace).steps()
    return [_predicated(schedule.predicates, steps, frame)] if schedule.predicates else steps


def _predicated(predicates: Sequence[Predicate], steps: Sequence[Step], frame: Frame) -> Step:
    values = frame.values
    tests = [(frame.cell(frame.slot(_element(p.flag))), p.value) for p in predicates]

    def run() -> None:
        if all(values[cell][()] == wanted for cell, wanted in tests):
            for step in steps:
                step()

    return run


def _element(flag: Buffer) -> View:
    return View(flag.type.dtype, (), {}, flag, (), 0)


class _Binder:
    def __init__(self, schedule: Schedule, frame: Frame, workspace: Array) -> None:
        self._schedule = schedule
        self._frame = frame
        self._workspace = workspace
        self._temporaries: dict[Temporary, int] = {}
        self._cuts: dict[Register, _Cut] = {}
        # What a block makes anew has the extent of the block already.
        self._uncut = {i.output for i in schedule.each if i.kind == "assign"}

    def steps(self) -> list[Step]:
        schedule = self._schedule
        before = [self._step(i, whole=True) for i in schedule.before]
        each = [self._step(i, whole=False) for i in schedule.each]
        if schedule.axis is None:
            return each
        cuts = list(self._cuts.values())
        blocks = _in_blocks(self._frame.values, cuts, each, schedule.extent, schedule.length)
        return [*before, blocks]

    def _step(self, instruction: Instruction, whole: bool) -> Step:
        function, output = instruction.function, instruction.output
        slots = [self._slot(register, whole) for register in instruction.inputs]
        if output is None:
            return self._frame.step(function, slots)
        if instruction.kind == "assign":
            return self._frame.assigning_step(function, slots, self._slot(output, whole))
        slots.append(self._slot(output, whole))
        fast = scalar_step(instruction, self._frame, slots)
        return self._frame.step(function, slots) if fast is None else fast

    def _slot(self, register: Register, whole: bool) -> int:
        axis = self._schedule.axis
        if whole or axis is None or axis not in register.dims or register in self._uncut:
            return self._whole_slot(register)
        if register not in self._cuts:
            lead = (slice(None),) * register.dims[axis]
            source, local = self._whole_slot(register), isinstance(register, Temporary)
            self._cuts[register] = _Cut(source, self._frame.new_slot(), lead, local)
        return self._cuts[register].slot

    def _whole_slot(self, register: Register) -> int:
        if not isinstance(register, Temporary):
            return self._frame.slot(register)
        if register not in self._temporaries:
            shape = block_shape(register, self._schedule.axis, self._schedule.length)
            start = self._schedule.starts[register]
            array: Array = np.ndarray(shape, register.dtype, self._workspace, start)
            self._temporaries[register] = self._frame.new_slot(array)
        return self._temporaries[register]


def _in_blocks(
    values: list[Any], cuts: Sequence[_Cut], steps: Sequence[Step], extent: int, length: int
) -> Step:
    def run() -> None:
        for start in range(0, extent, length):
            stop = min(start + length, extent)
            block, first = slice(start, stop), slice(0, stop - start)
            for cut in cuts:
                part = (*cut.lead, first if cut.local else block)
                values[cut.slot] = values[cut.source][part]
            for step in steps:
                step()

    return run
