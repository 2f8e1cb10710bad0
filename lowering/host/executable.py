"""HostExecutable: a Plan ready to run on the CPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextvars import Context
from random import Random
from threading import Lock
from typing import Any

import numpy as np

from lowering.buffer import Buffer
from lowering.host.arena import POISON, Array, Workspace, aligned_bytes
from lowering.host.effects import Effects
from lowering.host.frame import Frame, Step
from lowering.host.graph import GraphBinder, kernel_schedules
from lowering.host.keeping import slots
from lowering.plan import Plan, WhileNode, walk
from lowering.slots import SlotReport
from tracegraph import progress
from tracegraph.donated import Donated
from tracegraph.errors import ClosedError
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
        self.plan = plan
        self._poison = poison
        self._lock = Lock()
        self._launches = 0
        self._bytes_copied = 0
        self._arena = aligned_bytes(plan.arena_bytes)
        self._wanted = [(t.shape, t.dtype) for t in plan.in_types]
        fresh = [buffer for buffer in plan.outputs if buffer.space == "output"]
        self._results = [(b.type.shape, b.type.dtype) for b in fresh]
        self._aliases = tuple(plan.aliases.items())
        # NumPy keeps its error state in the context: entering one costs less than np.errstate. It
        # is a new one, lest callbacks see what was being traced when the plan was compiled.
        self._quiet = Context()
        self._quiet.run(np.seterr, all="ignore")
        self._effects = Effects(plan)
        needed = Workspace()
        arguments = (plan.graph, self._overlap, self._effects, needed)
        schedules = self._quiet.run(kernel_schedules, *arguments)
        self._workspace = aligned_bytes(needed.size)
        frame = Frame(self._memory(), (*plan.inputs, *fresh))
        binder = GraphBinder(schedules, self._effects, frame, self._workspace, order)
        self._steps = binder.steps(plan.graph)
        loops = any(isinstance(node, WhileNode) for node in walk(plan.graph))
        self._plain = not loops and not plan.monitors
        frame.seal()
        self._frame: Frame | None = frame

    def __call__(self, arguments: Sequence[Any], donated: Donated | None = None) -> list[Array]:
        """Run on one array or number per input; the results are new arrays, or donated ones.

        Raises:
            TypeError: the number of arguments is wrong, or the dtype of one.
            ValueError: the shape of an argument is wrong.
            ClosedError: the executable was closed.
            TimeLimitError: the time was up while a loop ran.
            Exception: what the program's checks raise.
        """
        with self._lock:
            frame = self._frame
            if frame is None:
                raise ClosedError(self.plan.name)
            inputs = self._bound(arguments)
            outputs: list[Array] = [np.empty(shape, dtype) for shape, dtype in self._results]
            if self._poison:
                for memory in (self._arena, self._workspace, *outputs):
                    memory.reshape(-1).view(np.uint8).fill(POISON)
            self._launches += 1
            results = outputs
            if self._aliases:
                results = self._placed(inputs, outputs, arguments, donated)
            frame.bind(inputs + outputs)
            try:
                if self._plain:
                    self._quiet.run(_run, self._steps)
                else:
                    with self._effects.limited():
                        self._quiet.run(_run_with_bars, self._steps)
            finally:
                frame.release()
        return results

    def _placed(
        self,
        inputs: list[Array],
        outputs: list[Array],
        arguments: Sequence[Any],
        donated: Donated | None,
    ) -> list[Array]:
        """All results in order. Inputs that are written over are copied, unless that is allowed."""
        results = list(outputs)
        spent = False
        for output, number in self._aliases:
            array = inputs[number]
            owned = donated is not None and number in donated.owned and array is arguments[number]
            if owned and array.flags.owndata:
                spent = True
            else:
                self._bytes_copied += array.nbytes
                inputs[number] = array.copy()
            results.insert(output, inputs[number])
        for _, number in self._aliases:
            inputs[number].flags.writeable = True
        if donated is not None:
            donated.spent = spent
        return results

    def stats(self) -> dict[str, int]:
        """Launches so far, addresses updated (none on the host), bytes of arguments copied."""
        return {"launches": self._launches, "updates": 0, "bytes_copied": self._bytes_copied}

    @property
    def slots(self) -> SlotReport:
        """The arrays that each node works on and that are held between calls."""
        return SlotReport(self.plan.name, (), 0) if self._frame is None else slots(self.plan)

    def close(self) -> None:
        """Free the memory; later calls raise. Closing twice does nothing."""
        with self._lock:
            self._close()

    def close_idle(self) -> bool:
        """Close, unless a call is running; whether it is closed."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._close()
        finally:
            self._lock.release()
        return True

    def _close(self) -> None:
        self._frame = None
        self._steps = []
        self._arena = self._workspace = np.empty(0, np.uint8)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._frame is None

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory it holds; constants are the Plan's."""
        return {("host", id(self)): self._arena.nbytes + self._workspace.nbytes}

    def _bound(self, arguments: Sequence[Any]) -> list[Array]:
        if len(arguments) != len(self._wanted):
            raise TypeError(
                f"{self.plan.name!r} takes {len(self._wanted)} arrays, got {len(arguments)}: "
                "pass one per input"
            )
        bound: list[Array] = []
        for x, (shape, dtype) in zip(arguments, self._wanted, strict=True):
            if type(x) is not np.ndarray or x.dtype is not dtype or x.shape != shape:
                x = self._converted(len(bound), x, self.plan.in_types[len(bound)])
            flags = x.flags
            if not (flags.c_contiguous and flags.aligned):
                self._bytes_copied += x.nbytes
                x = np.array(x, order="C")
            bound.append(x)
        return bound

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


def _run(steps: Sequence[Step]) -> None:
    for step in steps:
        step()


def _run_with_bars(steps: Sequence[Step]) -> None:
    with progress.bars():
        _run(steps)
