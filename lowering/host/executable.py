"""HostExecutable: a Plan ready to run on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from random import Random
from threading import Lock, get_ident
from typing import Any

import numpy as np

from lowering.buffer import Buffer
from lowering.closing import held_if_free
from lowering.holding import holding
from lowering.host.arena import (
    RETURNABLE,
    Array,
    Workspace,
    aligned_bytes,
    returnable_bytes,
)
from lowering.host.graph import kernel_schedules
from lowering.host.keeping import slots
from lowering.host.program import Body, PlanWriter
from lowering.plan import Plan, WhileNode, walk
from lowering.report import bytes_held
from lowering.slots import SlotReport
from tracegraph import limits
from tracegraph.donated import Donated
from tracegraph.errors import ClosedError, ExportError
from tracegraph.exported import ExportedGraph
from tracegraph.types import ArrayType


class HostExecutable:
    """Runs a plan in an arena of its own: same offsets, same nodes, same conditions as on a device.

    Args:
        plan: what to run.
        poison: fill all memory that a call does not bring with `POISON` before each call, so that a
            read of what was never written shows.
        order: run the nodes of each graph in a random order that its edges allow.
    """

    def __init__(self, plan: Plan, *, poison: bool = False, order: Random | None = None) -> None:
        if plan.per_launch and not RETURNABLE:
            plan = replace(plan, per_launch=False, kept_because="no madvise on this system")
        self.plan = plan
        self._lock = Lock()
        self._holding = holding(self._lock)
        self._launches = 0
        self._give_back: list[Callable[[], None]] = []
        self._arena = self._bytes(plan.arena_bytes)
        self._wanted = [(t.shape, t.dtype) for t in plan.in_types]
        self._written = tuple(plan.aliases.values())  # inputs that outputs are written over
        # NumPy keeps its error state in the context: entering one costs less than np.errstate. It
        # is a new one, lest callbacks see what was being traced when the plan was compiled.
        self._quiet = Context()
        self._quiet.run(np.seterr, all="ignore")
        needed = Workspace()
        schedules = self._quiet.run(kernel_schedules, plan, self._overlap, needed)
        self._workspace = self._bytes(needed.size)
        self._scratch_bytes = plan.arena_bytes + needed.size
        memory = (self._arena, self._workspace)
        writer = PlanWriter(plan, schedules, self._memory(), self._workspace, order)
        self._copied = writer.copied
        self._body: Body | None = writer.function(memory if poison else None)
        self._limited = any(isinstance(node, WhileNode) for node in walk(plan.graph))
        self._tells = bool(plan.monitors)
        self._caller: int | None = None  # the thread of a call that tells its user of progress
        self._inner: HostExecutable | None = None  # for calls from there

    def __call__(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Array]:
        """Run on one array or number per input; the results are new arrays, or donated ones.

        Raises:
            TypeError: the number of arguments is wrong, or the dtype of one.
            ValueError: the shape of an argument is wrong.
            ClosedError: the executable was closed.
            TimeLimitError: the time was up while a loop ran.
            Exception: what the program's checks raise.
        """
        return self.launch(self._checked(arguments), donated)

    def launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Array]:
        """The same of ndarrays of the right dtypes and shapes, and of numbers for any scalar.

        Raises:
            ClosedError: the executable was closed.
            TimeLimitError: the time was up while a loop ran.
            Exception: what the program's checks raise.
        """
        if self._tells and self._caller == get_ident():
            return self._launch_inside(arguments, donated)
        check_time = _time_check() if self._limited else None
        with self._holding:
            if self._body is None:
                raise ClosedError(self.plan.name)
            self._launches += 1
            if self._written:
                arguments = self._writable(arguments, donated)
            if self._tells:
                self._caller = get_ident()
            try:
                results: Sequence[Array] = self._quiet.run(self._body, arguments, check_time)
            finally:
                self._caller = None
                for give_back in self._give_back:
                    give_back()
            return results

    def _launch_inside(self, arguments: Sequence[Any], donated: Donated | None) -> Sequence[Array]:
        """A call by a function that a running call tells of its progress, in other memory."""
        if self._body is None:
            raise ClosedError(self.plan.name)
        if self._inner is None:
            self._inner = HostExecutable(self.plan)
        results = self._inner.launch(arguments, donated)
        self._launches += 1
        return results

    def _writable(self, arguments: Sequence[Any], donated: Donated | None) -> list[Array]:
        """The arguments, those that are written over as copies unless their own memory may be."""
        found, spent = list(arguments), False
        for number in self._written:
            argument = arguments[number]
            if donated is not None and number in donated.owned and _is_plain(argument):
                spent = True
            else:
                found[number] = self._copied.contiguous(argument, self._wanted[number][1])
        for number in self._written:
            found[number].flags.writeable = True
        if donated is not None:
            donated.spent = spent
        return found

    def export_graph(self, arguments: Sequence[Any]) -> ExportedGraph:
        """There is none: this raises ExportError."""
        raise ExportError(self.plan.name, 'it runs on the host; compile it for device="cuda"')

    def stats(self) -> dict[str, int]:
        """Launches so far, addresses updated (none on the host), bytes of arguments copied."""
        copied = self._copied.nbytes
        if self._inner is not None:
            copied += self._inner.stats()["bytes_copied"]
        return {"launches": self._launches, "updates": 0, "bytes_copied": copied}

    @property
    def slots(self) -> SlotReport:
        """The arrays that each node works on and that are held between calls."""
        return SlotReport(self.plan.name, (), 0) if self._body is None else slots(self.plan)

    def close(self) -> None:
        """Free the memory; later calls raise. Closing twice does nothing."""
        if self._caller == get_ident():
            self._close()  # the call that runs holds what it works in
            return
        with self._lock:
            self._close()

    def close_idle(self) -> bool:
        """Close, unless a call is running; whether it is closed."""
        with held_if_free([self._lock]) as idle:
            if idle:
                self._close()
            return idle

    def _close(self) -> None:
        self._body = self._inner = None
        self._arena = self._workspace = np.empty(0, np.uint8)
        self._give_back = []

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._body is None

    def memory(self) -> Mapping[str, int]:
        """As `Executable.memory`; there is no graph."""
        constants = sum(data.nbytes for _, data in self.plan.constants)
        return {"scratch": self._scratch_bytes, "constants": constants, "graph": 0}

    @property
    def bytes_held(self) -> int:
        """As `Executable.bytes_held`."""
        return 0 if self.closed else bytes_held(self.plan, self.memory())

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory it holds; constants are the Plan's."""
        inner = {} if self._inner is None else self._inner.pieces()
        if self.plan.per_launch:
            return inner
        return {("host", id(self)): self._arena.nbytes + self._workspace.nbytes, **inner}

    def _checked(self, arguments: Sequence[Any]) -> list[Array]:
        if len(arguments) != len(self._wanted):
            raise TypeError(
                f"{self.plan.name!r} takes {len(self._wanted)} arrays, got {len(arguments)}: "
                "pass one per input"
            )
        checked: list[Array] = []
        for x, (shape, dtype) in zip(arguments, self._wanted, strict=True):
            if type(x) is not np.ndarray or x.dtype is not dtype or x.shape != shape:
                x = self._converted(len(checked), x, self.plan.in_types[len(checked)])
            checked.append(x)
        return checked

    def _converted(self, number: int, x: Any, type_: ArrayType) -> Array:
        if isinstance(x, bool | int | float | complex):
            array = np.array(x, type_.dtype)
        else:
            array = np.asarray(x)
        if array.dtype != type_.dtype:
            raise TypeError(
                f"argument {number} of {self.plan.name!r} has dtype {array.dtype}, but the plan "
                f"was made for {type_}: cast it, or compile for its type"
            )
        if array.shape != type_.shape:
            raise ValueError(
                f"argument {number} of {self.plan.name!r} has shape {array.shape}, but the plan "
                f"was made for {type_}: reshape it, or compile for its type"
            )
        return array

    def _bytes(self, size: int) -> Array:
        """Memory to work in, which is given back after each call if the plan says so."""
        if not self.plan.per_launch:
            return aligned_bytes(size)
        found, give_back = returnable_bytes(size)
        self._give_back.append(give_back)
        return found

    def _memory(self) -> Mapping[Buffer, Array]:
        """The arrays of the buffers that keep their address."""
        memory: dict[Buffer, Array] = {}
        for buffer, data in self.plan.constants:
            constant = np.asarray(data, order="C").view()
            constant.flags.writeable = False
            memory[buffer] = constant
        for buffer, offset in self.plan.offsets.items():
            memory[buffer] = self._arena[offset : offset + buffer.type.nbytes]
        return memory

    def _overlap(self, one: Buffer, other: Buffer) -> bool:
        offsets = self.plan.offsets
        if one is other or one not in offsets or other not in offsets:
            return one is other
        first, second = offsets[one], offsets[other]
        return first < second + other.type.nbytes and second < first + one.type.nbytes


def _is_plain(argument: Any) -> bool:
    """Whether it is an array of memory of its own, in row-major order."""
    if type(argument) is not np.ndarray:
        return False
    flags = argument.flags
    return flags.owndata and flags.c_contiguous and flags.aligned


def _time_check() -> Callable[[], None] | None:
    """What loops call at every step: the caller's time limit, which the plan does not see."""
    deadline = limits.deadline()
    if deadline is None:
        return None
    exceeded = limits.exceeded()

    def check() -> None:
        if time.monotonic() >= deadline:
            raise exceeded

    return check
