"""CudaExecutable: a Plan that runs as one launch of one CUDA graph."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lowering.buffer import Buffer
from lowering.codegen import Unit, unit_source
from lowering.cuda.arguments import Bound, bind, check_type
from lowering.cuda.copies import COPY_SOURCE
from lowering.cuda.device import OpenDevice
from lowering.cuda.effects import connect
from lowering.cuda.emit import emit
from lowering.cuda.flight import Flight, later
from lowering.cuda.hostdriven import STORED_CONDITIONS, drive, host_driven
from lowering.cuda.interface import KernelNodeHandle
from lowering.cuda.memory import CudaBuffer
from lowering.cuda.placement import place
from lowering.cuda.values import ValueSlot, load_source, value_slots
from lowering.features import probed
from lowering.ladder import fit, needed
from lowering.plan import MemcpyNode, Plan, WhileNode, walk
from lowering.slots import SlotTable


def small_inputs(plan: Plan, unit: Unit) -> dict[Buffer, ValueSlot]:
    """The inputs that may be passed by value, among those that some kernel reads."""
    read = {buffer for code in unit.kernels.values() for buffer in code.parameters}
    read |= {node.source_buffer for node in walk(plan.graph) if isinstance(node, MemcpyNode)}
    return value_slots([buffer for buffer in plan.inputs if buffer in read])


def plan_source(plan: Plan, unit: Unit) -> str:
    """All CUDA C++ that a Plan needs, as one unit."""
    copies = any(isinstance(node, MemcpyNode) for node in walk(plan.graph))
    parts = (
        unit.source,
        load_source(list(small_inputs(plan, unit).values())),
        COPY_SOURCE if copies else "",
    )
    return "\n".join(part for part in parts if part)


class CudaExecutable:
    """The graph of one Plan on one device, instantiated once.

    `features` says what the device's graphs can do, and `plan` is the Plan as it was made fit for
    that. Where there are no conditional nodes, several graphs take the place of the one.

    A call writes changed addresses and values into the kernel nodes that hold them, and launches.
    Calls from several threads take turns up to the launch; none waits for the device.
    """

    def __init__(self, plan: Plan, device: OpenDevice) -> None:
        self._device = device
        self._driver = device.driver
        self._lock = threading.Lock()
        self._in_flight: deque[tuple[Callable[[], bool], list[Any]]] = deque()
        self._launches = self._updates = self._bytes_copied = 0
        self._driver.activate()
        self.features = probed(needed(plan), device.supports)
        self.plan = plan = fit(plan, self.features)
        self._graphs = self._driver
        unit = unit_source(plan)
        source = plan_source(plan, unit)
        if not self.features.conditional_nodes:
            self._graphs = host_driven(self._driver, plan.conditions)
            source = STORED_CONDITIONS + source
        values = small_inputs(plan, unit)
        self._loops = self.features.conditional_nodes and any(
            isinstance(node, WhileNode) for node in walk(plan.graph)
        )
        code = device.compile(source)
        if device.timeline.busy:
            device.timeline.settle()  # loading and pinning may wait in the driver, for loops too
        module = self._driver.load(code)
        placement = place(plan, unit, values, device.timeline)
        self._effects, channels = connect(plan, unit, device.timeline, placement.slots)
        self._special = self._loops or self._effects is not None
        emitted = emit(plan, unit, module, values, placement, channels, self._graphs)
        self._slots: SlotTable | None = placement.slots
        self._bytes_held = placement.nbytes
        self._load = emitted.load
        fixed, buffers = placement.addresses, (*plan.inputs, *plan.outputs)
        self._inputs = [
            (b.type, (values[b], fixed[b]) if b in values else None) for b in plan.inputs
        ]
        self._outputs = [(b.type.strong(), b.type.nbytes) for b in plan.outputs]
        self._users = [emitted.users.get(buffer, []) for buffer in buffers]
        self._bound = [fixed.get(buffer, 0) for buffer in buffers]
        self._stale_values = False
        self._graph: Any = self._graphs.instantiate(emitted.graph)

    def __call__(self, arguments: Sequence[Any]) -> tuple[CudaBuffer, ...]:
        """Run once, and return fresh results in order, without waiting for them.

        Raises:
            TypeError: the number of arguments, or a dtype or shape, is not the Plan's.
            RuntimeError: the executable is closed.
        """
        if len(arguments) != len(self.plan.inputs):
            raise TypeError(
                f"{self.plan.name} takes {len(self.plan.inputs)} arrays, got {len(arguments)}"
            )
        with self._lock:
            if self._graph is None:
                raise RuntimeError(
                    f"the executable of {self.plan.name} is closed; compile it again"
                )
            self._driver.activate()
            return self._run(arguments)

    def _run(self, arguments: Sequence[Any]) -> tuple[CudaBuffer, ...]:
        while self._in_flight and self._in_flight[0][0]():
            self._in_flight.popleft()
        device, driver = self._device, self._driver
        words = None if self._load is None else self._load.values
        bound: Bound | None = None
        flight: Flight | None = None
        addresses = []
        for argument, (type_, slot) in zip(arguments, self._inputs, strict=True):
            if type(argument) is CudaBuffer and argument.driver is driver:
                check_type(argument.type.dtype, argument.type.shape, type_)
                addresses.append(argument.pointer)
                if argument.flight is not None:
                    flight = later(flight, argument.flight)
            else:
                bound = bound or Bound()
                addresses.append(bind(argument, type_, slot, words, device, bound))
                self._stale_values |= bound.new_values
        results = tuple(
            CudaBuffer(device.pool.take(nbytes), type_, device.timeline)
            for type_, nbytes in self._outputs
        )
        addresses += [result.pointer for result in results]
        if addresses != self._bound or self._stale_values:
            self._update(addresses)
        if self._special or device.timeline.busy:
            flight = device.timeline.launch(self._start, self._effects, self._loops, flight)
            for result in results:
                result.flight = flight
        else:
            self._graphs.launch(self._graph)
        self._launches += 1
        if bound is not None:
            self._bytes_copied += bound.bytes_copied
            if bound.foreign:
                self._in_flight.append((driver.record(), bound.foreign))
        return results

    def _start(self) -> None:
        if self.features.conditional_nodes:
            self._graphs.launch(self._graph)
        else:
            timeline = self._device.timeline
            prints = timeline.prints if self.plan.prints else None
            drive(lambda: self._graphs.launch(self._graph), self._effects, prints, timeline)

    def _update(self, addresses: list[int]) -> None:
        """Write what changed into the executable's nodes, each at most once."""
        changed: dict[int, KernelNodeHandle] = {}
        if self._load is not None and self._stale_values:
            changed[id(self._load)] = self._load
        for address, before, users in zip(addresses, self._bound, self._users, strict=True):
            if address != before:
                for kernel, position in users:
                    kernel.values[position] = address
                    changed[id(kernel)] = kernel
        # Should an update fail, no address counts as bound, and the next call writes them all.
        self._bound = [-1] * len(addresses)
        for kernel in changed.values():
            self._graphs.update_kernel(self._graph, kernel)
        self._bound, self._stale_values = addresses, False
        self._updates += len(changed)

    def stats(self) -> Mapping[str, int]:
        """Launches, node updates and bytes copied since compilation, and fixed bytes held."""
        return {
            "launches": self._launches,
            "updates": self._updates,
            "bytes_copied": self._bytes_copied,
            "bytes_held": self._bytes_held,
        }

    def close(self) -> None:
        """Free the graph and its memory once it has finished; a later call raises.

        A second close does nothing.
        """
        with self._lock:
            if self._graph is not None:
                self._device.timeline.settle()
                graph, self._graph = self._graph, None
                self._graphs.close(graph)
                self._in_flight.clear()
                self._users = []
                self._load = self._slots = None
                self._bytes_held = 0
