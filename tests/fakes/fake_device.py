"""A device in host memory: it runs programs by interpretation and hands out opaque buffers."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph.ir import interpret
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.scratch import Scratch


class FakeBuffer:
    """Stands for device memory; `reads` counts copies to the host."""

    def __init__(self, data: np.ndarray, device: str) -> None:
        self._data = data
        self.device = device
        self.reads = 0
        self.waits = 0
        self.consumers: list[int] = []

    @property
    def type(self) -> ArrayType:
        return ArrayType(self._data.dtype, self._data.shape)

    @property
    def pointer(self) -> int:
        return self._data.ctypes.data

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self._data.shape,
            "typestr": self._data.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "stream": 1,
        }

    def to_host(self) -> np.ndarray:
        self.reads += 1
        return self._data.copy()

    def synchronize(self) -> None:
        self.waits += 1

    def hand_over(self, stream: int) -> None:
        self.consumers.append(stream)


class FakeExecutable:
    def __init__(self, program: Program, device: str) -> None:
        self.program = self.plan = program
        self.device = device
        self.closed = False
        self.launches = 0
        self.arguments: list[Sequence[Any]] = []
        self._lock = threading.Lock()

    def __call__(self, arguments: Sequence[Any], donated: Donated | None = None) -> tuple[Any, ...]:
        with self._lock:
            self.launches += 1
            self.arguments.append(list(arguments))
        arrays = [
            np.asarray(a._data if isinstance(a, FakeBuffer) else a, t.dtype)
            for a, t in zip(arguments, self.program.in_types, strict=True)
        ]
        results = (np.array(r) for r in interpret.run(self.program, *arrays))
        if self.device == "host":
            return tuple(results)
        return tuple(FakeBuffer(r, self.device) for r in results)

    launch = __call__

    def stats(self) -> Mapping[str, int]:
        return {"launches": self.launches, "updates": 0, "bytes_copied": 0}

    def memory(self) -> Mapping[str, int]:
        return {"scratch": 0, "constants": 0, "graph": 1000}

    @property
    def bytes_held(self) -> int:
        return 0

    def pieces(self) -> Mapping[Hashable, int]:
        return {id(self): 1000}

    def upload(self) -> None:
        """There is nothing to do."""

    def close(self) -> None:
        self.closed = True

    def close_idle(self) -> bool:
        raise AssertionError("nothing closes executables by itself")


class FakeBackend:
    def __init__(self, device: str) -> None:
        self.device = device
        self.compiled: list[FakeExecutable] = []

    def compile(self, plan: Program) -> FakeExecutable:
        executable = FakeExecutable(plan, self.device)
        self.compiled.append(executable)
        return executable

    def memory_stats(self) -> dict[str, int]:
        return {"graphs": len(self.compiled)}


class FakeCompiler:
    """Stands for the lowering package: a plan is the program itself."""

    def __init__(self) -> None:
        self.backends: dict[str, FakeBackend] = {}

    def plan_of(
        self,
        program: Program,
        device: str,
        donated: Sequence[int] = (),
        *,
        scratch: Scratch = "kept",
    ) -> Program:
        return program

    def backend(self, device: str) -> FakeBackend:
        return self.backends.setdefault(device, FakeBackend(device))

    def open_early(self, device: str) -> None:
        """Nothing: a fake device is open."""

    def reset(self) -> None:
        raise AssertionError("nothing is reset by itself")

    def trim(self) -> None:
        raise AssertionError("nothing is trimmed by itself")

    def create_stream(self, device: str, priority: int | None) -> None:
        return None

    def source(self, plan: Program) -> str:
        return f"// {plan.name}"

    def memory(self, plan: Program) -> dict[str, int]:
        outputs = sum(t.nbytes for t in plan.out_types)
        return {"arguments": 0, "outputs": outputs, "scratch": 0, "constants": 0}

    def schedules(self, plan: Program) -> tuple[tuple[str, str, str], ...]:
        return ()

    def explain(self, plan: Program) -> str:
        return plan.name

    def dot(self, plan: Program) -> str:
        return plan.name
