"""The function of a plan as machine code: arguments are bound, the code runs, results return."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

from lowering.host.arena import POISON, Array
from lowering.host.code import Code, ExecutableMemory
from lowering.host.result_pool import RESULTS, is_pooled
from lowering.host.source.plan_function import Copied
from lowering.native.blas import routine
from lowering.native.compiler import compile, load
from lowering.native.host_calls import HostCalls, arrays_of
from lowering.native.module import ENTRY, NativeModule, module_of
from lowering.native.table import TRAMPOLINE
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan
from tracegraph import progress

_Entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

_SPARE = np.zeros(64, np.uint8)
"""What the code reads in place of an array without elements."""

_IN_PLACE = 257
"""The flags of an array that is C-contiguous and aligned."""


def native_code(
    plan: Plan, memory: ExecutableMemory, *, poison: bool, order: Random | None
) -> Code:
    """The machine code of a plan as a function of arguments."""
    module = module_of(plan, order)
    calls = HostCalls(plan, module.sites, memory.arrays, memory.overlaps, memory.allocate)
    runner = _Runner(plan, module, calls, memory, poison)
    body = runner.run
    if plan.monitors:

        def body(arguments: Sequence[Any], check: Callable[[], None] | None) -> list[Array]:
            with progress.bars():
                return runner.run(arguments, check)

    return Code(body, runner.copied, calls.section_times)


class _Runner:
    """Calls the machine code of a plan."""

    def __init__(
        self,
        plan: Plan,
        module: NativeModule,
        calls: HostCalls,
        memory: ExecutableMemory,
        poison: bool,
    ) -> None:
        self.copied = Copied()
        self._plan, self._calls = plan, calls
        self._loaded = load(compile(module.text, module.functions), ENTRY)
        self._entry = _Entry(self._loaded.address)
        self._arena = memory.arena
        self._arena_address = memory.arena.ctypes.data
        self._poisoned = (memory.arena, calls.workspace) if poison else ()
        self._table = (ctypes.c_void_p * len(module.table))()
        self._keep: list[Any] = [calls.trampoline]
        table = module.table
        address = ctypes.cast(calls.trampoline, ctypes.c_void_p).value
        self._table[table.place(TRAMPOLINE)] = address
        for buffer, _ in plan.constants:
            self._table[table.place(buffer)] = _address(memory.arrays[buffer])
            self._keep.append(memory.arrays[buffer])
        for buffer, word in calls.words.items():
            self._table[table.place(buffer)] = word.ctypes.data
        for name in table.names:
            if name.startswith("blas "):
                found = routine(name.removeprefix("blas "))
                assert found is not None
                self._table[table.place(name)] = found.address
        self._inputs = [(table.place(b), b.type) for b in plan.inputs]
        fresh = [b for b in dict.fromkeys(plan.outputs) if b.space == "output"]
        self._fresh = [(table.place(b), b, _maker(b)) for b in fresh]
        self._bound = arrays_of(module.sites.sites, plan)

    def run(self, arguments: Sequence[Any], check_time: Callable[[], None] | None) -> list[Array]:
        """The results for arguments of the right types."""
        plan, table, calls = self._plan, self._table, self._calls
        found: list[Array] = []
        for number, ((place, type_), array) in enumerate(zip(self._inputs, arguments, strict=True)):
            if type(array) is not np.ndarray:
                array = np.array(array, type_.dtype)
            elif array.flags.num & _IN_PLACE != _IN_PLACE:
                array = self.copied.contiguous(number, array)
            found.append(array)
            table[place] = _address(array)
        for memory in self._poisoned:
            memory.fill(POISON)
        made: dict[Buffer, Array] = {}
        for place, buffer, make in self._fresh:
            made[buffer] = array = make()
            if self._poisoned:
                array.reshape(-1).view(np.uint8).fill(POISON)
            table[place] = _address(array)
        known = {**dict(zip(plan.inputs, found, strict=True)), **made}
        if self._bound:
            calls.bind({buffer: known[buffer] for buffer in self._bound})
        calls.check_time, calls.failure = check_time, None
        if self._entry(ctypes.addressof(table), self._arena_address):
            failure, calls.failure = calls.failure, None
            assert failure is not None
            raise failure
        return [known[buffer] for buffer in plan.outputs]


def _address(array: Array) -> int:
    """The address of the first element; of some other memory where there is none."""
    if not array.size:
        return _SPARE.ctypes.data
    address: int = array.__array_interface__["data"][0]
    return address


def _maker(buffer: Buffer) -> Callable[[], Array]:
    type_ = buffer.type
    if is_pooled(type_):
        return RESULTS.maker(type_)
    return lambda: np.empty(type_.shape, type_.dtype)
