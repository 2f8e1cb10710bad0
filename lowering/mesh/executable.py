"""MeshExecutable: one Plan on all devices of a mesh, whose executables run together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from lowering.mesh.together import Arguments, Results
from lowering.plan.plan import Plan
from tracegraph.concurrency.locks import held_if_free
from tracegraph.errors import (
    ClosedError,
    ExportError,
    ShardingError,
)
from tracegraph.sharding.mesh import Mesh
from tracegraph.sharding.sharded_buffer import ShardedBuffer, indices
from tracegraph.sharding.sharding import Sharding
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.calls.last_call import Handling, LastRun
from tracegraph.staging.exported import ExportedGraph
from tracegraph.staging.graph_view import GraphView
from tracegraph.staging.interfaces import Executable

Together = Callable[[Sequence[Executable], Mesh, Arguments, Sequence[Donated | None]], Results]
"""Launches all devices: (executables, mesh, arguments of each, what is donated on each) -> results
of each."""


class MeshExecutable:
    """Runs a Plan on the devices of its mesh; `devices` are their executables, in this process.

    It is closed when its devices are `abandoned`. `settle` waits for all of them: kernels of one
    may still store into the memory of another, which has ended.
    """

    def __init__(
        self,
        plan: Plan,
        devices: Sequence[Executable],
        together: Together,
        abandoned: Callable[[], bool] = lambda: False,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        assert plan.sharding is not None
        self.plan = plan
        self._together, self._abandoned, self._settle = together, abandoned, settle
        self._sharding: Sharding = plan.sharding
        self._devices = devices
        self._lock = Lock()  # one launch at a time: threads cannot come between one another
        self._launches = 0
        mesh = self._sharding.mesh
        self._places = [
            [mesh.place(device)[name] for name in self._sharding.indices]
            for device in mesh.local_devices
        ]

    def __call__(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Any]:
        """Run once on whole arguments; the results are in blocks.

        Raises:
            ShardingError: an argument is divided in another way.
            ClosedError: the executable was closed.
            DeadlockError: devices wait for one another for ever.
            PeerLostError: another process is no longer there.
            Exception: what the program's checks raise on a device.
        """
        if self.closed:
            raise ClosedError(self.plan.name)
        taken: Sequence[Donated | None] = [None] * len(self._devices)
        if donated is not None:
            owned = {n: arguments[n] for n in donated.owned}
            blocks = {n: list(x.blocks) for n, x in owned.items() if isinstance(x, ShardedBuffer)}
            taken = donated.of_blocks(blocks, len(self._devices))
            del owned, blocks
        given = self._divided(arguments)
        try:
            with self._lock:
                self._launches += 1
                found = self._together(self._devices, self._sharding.mesh, given, taken)
        finally:
            if donated is not None:
                donated.spent = any(each is not None and each.spent for each in taken)
        sharding = self._sharding
        return [
            ShardedBuffer(type_, sharding.mesh, spec, blocks)
            for type_, spec, blocks in zip(
                sharding.out_types, sharding.out_specs, zip(*found, strict=True), strict=True
            )
        ]

    def launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Any]:
        """As a call: which blocks arguments have is looked at each time."""
        return self(arguments, donated)

    def _divided(self, arguments: Sequence[Any]) -> list[list[Any]]:
        """The arguments of each device of this process."""
        sharding = self._sharding
        known = zip(arguments, sharding.in_specs, sharding.paths, strict=True)
        columns = [self._blocks(*each) for each in known]
        return [
            [*(column[number] for column in columns), *own]
            for number, own in enumerate(self._places)
        ]

    def _blocks(self, argument: Any, spec: Any, path: str) -> Sequence[Any]:
        mesh = self._sharding.mesh
        if isinstance(argument, ShardedBuffer):
            if argument.mesh != mesh or argument.spec != spec:
                raise ShardingError(
                    f"argument {path} of {self.plan.name!r} is divided over {argument.mesh} by "
                    f"{argument.spec}, but the function takes it over {mesh} by {spec}; move it by "
                    "tracegraph.device_put(x, mesh, spec)"
                )
            return argument.blocks
        if isinstance(argument, bool | int | float | complex):
            return [argument] * len(self._devices)
        array = np.asarray(argument.to_host() if hasattr(argument, "to_host") else argument)
        return [array[index] for index in indices(mesh, spec, array.shape)]

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._abandoned() or any(device.closed for device in self._devices)

    def upload(self) -> None:
        """As `Executable.upload`."""
        for device in self._devices:
            device.upload()

    def view(self) -> GraphView:
        """Raise NoGraphError."""
        return self._devices[0].view()

    def export_graph(
        self, arguments: Sequence[Any], *, programmatic_edges: bool = True
    ) -> ExportedGraph:
        """Raise ExportError: a program of several devices is no graph of one."""
        raise ExportError(self.plan.name, "it runs on the devices of a mesh, together")

    def stats(self) -> Mapping[str, int]:
        """Launches of all devices together; bytes copied by all."""
        copied = sum(device.stats()["bytes_copied"] for device in self._devices)
        return {"launches": self._launches, "updates": 0, "bytes_copied": copied}

    def last_run(self, since: float) -> LastRun:
        """What the last run of the first device did."""
        found = self._devices[0].last_run(since)
        handling: Sequence[tuple[Handling, int]] = found.handling[: len(self._sharding.in_specs)]
        return LastRun(tuple(handling))

    def timings(self) -> Mapping[str, float]:
        """Those of the first device."""
        return self._devices[0].timings()

    @property
    def slots(self) -> Any:
        """What the nodes of each device keep alive."""
        return self._devices[0].slots

    def memory(self) -> Mapping[str, int]:
        """Bytes of all devices together; constants are those of the Plan."""
        own = self._devices[0].memory()
        return {**own, "scratch": own["scratch"] * len(self._devices)}

    @property
    def bytes_held(self) -> int:
        """Bytes held on all devices."""
        return sum(device.bytes_held for device in self._devices)

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory of each device."""
        return {key: n for device in self._devices for key, n in device.pieces().items()}

    def close(self) -> None:
        """Free the memory of all devices, once no call is running; later calls raise."""
        with self._lock:
            self._close()

    def close_idle(self) -> bool:
        """Close, unless a call is running. Returns whether it is closed.

        Of several processes, none closes it alone: all build a program together.
        """
        if self._sharding.mesh.processes > 1:
            return False
        with held_if_free([self._lock]) as idle:
            if idle:
                self._close()
            return idle

    def _close(self) -> None:
        if not self.closed:
            self._settle()
        for device in self._devices:
            device.close()
