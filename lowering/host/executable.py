"""HostExecutable: a plan compiled for the CPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.host.arena import (
    RETURNABLE,
    Array,
    aligned_bytes,
    returnable_bytes,
)
from lowering.host.chosen_code import chosen_code
from lowering.host.code import ExecutableMemory, nothing
from lowering.host.node_owners import slots
from lowering.host.serialised_calls import PlanCall, Running
from lowering.plan.nests.buffer import Buffer, overlap
from lowering.plan.owners import SlotReport
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import bytes_held
from tracegraph.concurrency.locks import held_if_free
from tracegraph.errors import ClosedError, ExportError, NoGraphError
from tracegraph.ir.types import ArrayType
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.calls.last_call import Handling, LastRun
from tracegraph.staging.exported import ExportedGraph
from tracegraph.staging.graph_view import GraphView

if TYPE_CHECKING:
    from random import Random


class HostExecutable:
    """Runs a plan in its own arena, with the offsets, nodes and conditions of a device.

    Args:
        plan: what to run.
        poison: fill the arena, temporaries and results with `POISON` before each call, so that a
            read of unwritten memory shows.
        order: run the nodes of each graph in a random topological order.

    Raises:
        ValueError: the environment variable TRACEGRAPH_HOST has an unknown value.
    """

    def __init__(self, plan: Plan, *, poison: bool = False, order: Random | None = None) -> None:
        if plan.per_launch and not RETURNABLE:
            plan = replace(plan, per_launch=False, kept_because="no madvise on this system")
        # NumPy keeps its error state in the context; to enter one costs less than np.errstate. A
        # new context, so that callbacks do not see the trace that the plan was compiled in.
        quiet = Context()
        quiet.run(np.seterr, all="ignore")
        plan, make_code = chosen_code(quiet, plan, order)
        self.plan = plan
        self._give_back: list[Callable[[], None]] = []
        self._arena = self._bytes(plan.arena_bytes)
        self._expected = [(t.shape, t.dtype) for t in plan.in_types]
        self._further: list[Array] = []
        memory = ExecutableMemory(self._arena, self._memory(), self._further_bytes, self._overlap)
        code = make_code(plan, memory, poison=poison, order=order)
        self._scratch_bytes = plan.arena_bytes + sum(each.nbytes for each in self._further)
        self._copied, self._section_times = code.copied, code.section_times
        self._finish = code.finish
        another = partial(HostExecutable, plan)
        self._running = Running(plan, code.body, quiet, code.copied, self._give_back, another)
        self.launch: PlanCall = self._running.quickest()
        """A call without checks: of ndarrays with the right dtypes and shapes, numbers for
        scalars."""

    def __call__(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Array]:
        """Run on one array or number per input; the results are new arrays, or donated ones.

        Raises:
            TypeError: the number of arguments is wrong, or the dtype of one.
            ValueError: the shape of an argument is wrong.
            ClosedError: the executable was closed.
            TimeLimitError: the time limit passed while a loop ran.
            Exception: what the program's checks raise.
        """
        return self.launch(self._checked(arguments), donated)

    def upload(self) -> None:
        """As `Executable.upload`: the code is made as fast as it becomes.

        Raises:
            ClosedError: it is closed.
        """
        if self.closed:
            raise ClosedError(self.plan.name)
        self._finish()

    def view(self) -> GraphView:
        """Raise NoGraphError."""
        raise NoGraphError(self.plan.name, "it runs on the host")

    def export_graph(
        self, arguments: Sequence[Any], *, programmatic_edges: bool = True
    ) -> ExportedGraph:
        """Raise ExportError: there is no graph."""
        raise ExportError(self.plan.name, 'it runs on the host; compile it for device="cuda"')

    def stats(self) -> dict[str, int]:
        """Launches so far, updated addresses (none on the host), copied bytes of arguments."""
        copied, inner = self._copied.nbytes, self._running.inner
        if inner is not None:
            copied += inner.stats()["bytes_copied"]
        return {"launches": self._running.launches, "updates": 0, "bytes_copied": copied}

    def last_run(self, since: float) -> LastRun:
        """As `Executable.last_run`."""
        handling: list[tuple[Handling, int]] = []
        overwritten = set(self.plan.aliases.values())
        for number, type_ in enumerate(self.plan.in_types):
            when, nbytes = self._copied.last.get(number, (0.0, 0))
            if when >= since and nbytes:
                handling.append(("copied", nbytes))
            elif number in overwritten:
                handling.append(("overwritten", 0))
            else:
                handling.append(("in place" if type_.shape else "by value", 0))
        return LastRun(tuple(handling))

    def timings(self) -> dict[str, float]:
        """Milliseconds of the timed sections in the last call."""
        return self._section_times.milliseconds()

    @property
    def slots(self) -> SlotReport:
        """The arrays of each node that are held between calls."""
        return SlotReport(self.plan.name, (), 0) if self.closed else slots(self.plan)

    def close(self) -> None:
        """Free the memory; later calls raise. Closing twice does nothing."""
        if self._running.is_caller:
            self._close()  # the running call keeps its memory alive
            return
        with self._running.lock:
            self._close()

    def close_idle(self) -> bool:
        """Close, unless a call is running. Returns whether it is closed."""
        with held_if_free([self._running.lock]) as idle:
            if idle:
                self._close()
            return idle

    def _close(self) -> None:
        self._running.close()
        self._arena = np.empty(0, np.uint8)
        self._give_back, self._further = [], []
        self._finish = nothing

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._running.closed

    def memory(self) -> Mapping[str, int]:
        """As `Executable.memory`; there is no graph."""
        constants = sum(data.nbytes for _, data in self.plan.constants)
        return {"scratch": self._scratch_bytes, "constants": constants, "graph": 0}

    @property
    def bytes_held(self) -> int:
        """As `Executable.bytes_held`."""
        return 0 if self.closed else bytes_held(self.plan, self.memory())

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory that it holds; constants belong to the plan."""
        inner = {} if self._running.inner is None else self._running.inner.pieces()
        if self.plan.per_launch:
            return inner
        further = sum(each.nbytes for each in self._further)
        return {("host", id(self)): self._arena.nbytes + further, **inner}

    def _checked(self, arguments: Sequence[Any]) -> list[Array]:
        if len(arguments) != len(self._expected):
            raise TypeError(
                f"{self.plan.name!r} takes {len(self._expected)} arrays, got {len(arguments)}: "
                "pass one per input"
            )
        checked: list[Array] = []
        for x, (shape, dtype) in zip(arguments, self._expected, strict=True):
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
        """Memory that is returned to the system after each call if the plan says so."""
        if not self.plan.per_launch:
            return aligned_bytes(size)
        found, give_back = returnable_bytes(size)
        self._give_back.append(give_back)
        return found

    def _further_bytes(self, size: int) -> Array:
        """Memory besides the arena, which lives as long."""
        self._further.append(self._bytes(size))
        return self._further[-1]

    def _memory(self) -> Mapping[Buffer, Array]:
        """The arrays of the buffers with a fixed address."""
        memory: dict[Buffer, Array] = {}
        for buffer, data in self.plan.constants:
            constant = np.asarray(data, order="C").view()
            constant.flags.writeable = False
            memory[buffer] = constant
        for buffer, offset in self.plan.offsets.items():
            memory[buffer] = self._arena[offset : offset + buffer.type.nbytes]
        return memory

    def _overlap(self, one: Buffer, other: Buffer) -> bool:
        return overlap(one, other, self.plan.offsets)
