"""The function of a plan as machine code: arguments are bound, the code runs, results return.

The function is a few lines of Python, written for the plan: a call of `x + 1` takes 0.8 µs. Native
code gets the addresses of array objects and finds those of their elements itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from random import Random
from struct import Struct
from typing import Any, NoReturn

import numpy as np

from lowering.host.arena import Array
from lowering.host.code import Body, Code, Copied, ExecutableMemory, fill_with_poison, with_bars
from lowering.host.result_pool import RESULTS, is_pooled
from lowering.native.blas import routine
from lowering.native.compilation.compiler import Loaded
from lowering.native.compilation.first_level import first_level
from lowering.native.compilation.tiers import Entry, Tiers
from lowering.native.host_calls import HostCalls, have_room, trampoline
from lowering.native.module import ENTRY, NativeModules
from lowering.native.polls import CLOCK, clock_address
from lowering.native.pool import addresses, ready
from lowering.native.python_source import PythonSource
from lowering.native.table import ARENA, POOL, RUN_CHUNKS, TRAMPOLINE
from lowering.native.work import work_of
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import walk
from lowering.plan.plan import Plan

SHORT = 1 << 12
"""The work of a plan that runs for a few microseconds: it keeps the GIL."""

_SPARE = np.zeros(64, np.uint8)
"""What the code reads in place of an array without elements."""

_IN_PLACE = 257
"""The flags of an array that is C-contiguous and aligned."""


def native_code(
    module: NativeModules,
    plan: Plan,
    memory: ExecutableMemory,
    *,
    poison: bool,
    order: Random | None,
) -> Code:
    """The machine code of a plan, whose modules are written, as a function of arguments."""
    calls = HostCalls(plan, module.sites, memory)
    to_host = trampoline(calls)
    table = _table(plan, module, calls, memory, to_host)
    writer = _FunctionWriter(plan, module, calls, table)
    poisoned = (memory.arena, calls.workspace) if poison else None
    prototype = ctypes.PYFUNCTYPE if _is_short(plan) else ctypes.CFUNCTYPE
    function = prototype(ctypes.c_int32, ctypes.c_void_p)

    def entry(code: Loaded) -> Entry:
        made: Any = function(code.addresses[ENTRY])
        made.kept = code, to_host, table, plan.constants
        return made  # type: ignore[no-any-return]

    tiers = Tiers(module.modules, ENTRY, first_level(plan), entry)
    body = writer.function(tiers, poisoned)
    return Code(body, writer.copied, calls.section_times, tiers.finish)


class _FunctionWriter:
    """Writes the function that calls the machine code of a plan."""

    def __init__(self, plan: Plan, module: NativeModules, calls: HostCalls, table: Any) -> None:
        self.copied = Copied()
        self._plan, self._calls, self._module = plan, calls, module
        self._source = PythonSource()
        self._inputs = {buffer: f"a{i}" for i, buffer in enumerate(plan.inputs)}
        fresh = (buffer for buffer in plan.outputs if buffer.space == "output")
        self._outputs = {buffer: f"o{i}" for i, buffer in enumerate(dict.fromkeys(fresh))}
        self._arrays = {**self._inputs, **self._outputs}
        self._table = table

    def function(self, tiers: Tiers, poisoned: Sequence[Array] | None) -> Body:
        """The function; before each call it poisons these arrays and the results, if given."""
        source, plan = self._source, self._plan
        lines = [*self._argument_lines(), *self._result_lines(poisoned)]
        objects = [self._object(b, variable) for b, variable in self._arrays.items()]
        if objects:
            first = self._module.table.place(next(iter(self._arrays)))
            pack = Struct(f"{len(objects)}P").pack_into
            start = first * ctypes.sizeof(ctypes.c_void_p)
            lines.append(
                f"{source.name(pack)}({source.name(self._table)}, {start}, {', '.join(objects)})"
            )
        calls = self._calls
        if calls.arrays:
            known = ", ".join(f"{source.name(b)}: {self._arrays[b]}" for b in calls.arrays)
            lines.append(f"{source.name(calls.bind)}({{{known}}})")
        if any(isinstance(node, WhileNode) for node in walk(plan.graph)):
            lines.append(f"{source.name(calls.limit)}(check_time)")
        if POOL in self._module.table.names:
            lines.append(f"{source.name(ready)}()")
        if self._module.sites.sites or CLOCK in self._module.table.names:
            lines.append(f"{source.name(have_room)}()")
        entry = source.name(tiers.entry)
        run = f"{entry}({ctypes.addressof(self._table)})"
        lines.append(f"if {run}: {source.name(_raise)}({source.name(calls)})")
        results = f"[{', '.join(self._arrays[b] for b in plan.outputs)}]"
        head = "def run(arguments, check_time):"
        body = source.function([head, *lines], results, plan.name)
        tiers.exchange_by(partial(body.__globals__.__setitem__, entry))
        return with_bars(plan, body, calls.reset_bars, calls.draw_bars)

    def _object(self, buffer: Buffer, variable: str) -> str:
        """The address of an array object."""
        if not buffer.type.size:
            return str(id(_SPARE))
        return f"id({variable})"

    def _argument_lines(self) -> list[str]:
        if not self._inputs:
            return []
        name, lines = self._source.name, [f"[{', '.join(self._inputs.values())}] = arguments"]
        for number, (buffer, variable) in enumerate(self._inputs.items()):
            if not buffer.type.shape:  # it may be a number
                made = f"{name(np.array)}({variable}, {name(buffer.type.dtype)})"
                lines.append(f"if type({variable}) is not {name(np.ndarray)}: {variable} = {made}")
            made = f"{name(self.copied.contiguous)}({number}, {variable})"
            lines.append(
                f"if {variable}.flags.num & {_IN_PLACE} != {_IN_PLACE}: {variable} = {made}"
            )
        return lines

    def _result_lines(self, poisoned: Sequence[Array] | None) -> list[str]:
        name = self._source.name
        lines = [f"{name(fill_with_poison)}({name(array)})" for array in poisoned or ()]
        for buffer, variable in self._outputs.items():
            shape, dtype = buffer.type.shape, name(buffer.type.dtype)
            if is_pooled(buffer.type):
                lines.append(f"{variable} = {name(RESULTS.maker(buffer.type))}()")
            else:
                lines.append(f"{variable} = {name(np.empty)}({shape}, {dtype})")
            if poisoned is not None:
                lines.append(f"{name(fill_with_poison)}({variable})")
        return lines


def _table(
    plan: Plan, module: NativeModules, calls: HostCalls, memory: ExecutableMemory, to_host: Any
) -> Any:
    """The table of addresses, but for those of arguments and results."""
    table = module.table
    made = (ctypes.c_void_p * len(table))()
    made[table.place(ARENA)] = memory.arena.ctypes.data
    made[table.place(TRAMPOLINE)] = ctypes.cast(to_host, ctypes.c_void_p).value
    for buffer, _ in plan.constants:
        array = memory.arrays[buffer]
        made[table.place(buffer)] = array.ctypes.data if array.size else _SPARE.ctypes.data
    for buffer, word in calls.words.items():
        made[table.place(buffer)] = word.ctypes.data
    if POOL in table.names:
        made[table.place(POOL)], made[table.place(RUN_CHUNKS)] = addresses()
    if CLOCK in table.names:
        made[table.place(CLOCK)] = clock_address()
    for name in table.names:
        if name.startswith("blas "):
            found = routine(name.removeprefix("blas "))
            assert found is not None, f"{name} was there when the code was written"
            made[table.place(name)] = found.address
    return made


def _is_short(plan: Plan) -> bool:
    """Whether a plan runs for so short a time that other threads can wait for it."""
    loops = any(isinstance(node, WhileNode) for node in walk(plan.graph))
    return not loops and work_of(plan.graph) < SHORT


def _raise(calls: HostCalls) -> NoReturn:
    failure, calls.failure = calls.failure, None
    assert failure is not None, "native code stops early only where the host raised"
    raise failure
