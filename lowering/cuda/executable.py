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
from lowering.cuda.emit import emit
from lowering.cuda.interface import KernelNodeHandle
from lowering.cuda.memory import CudaBuffer
from lowering.cuda.placement import place
from lowering.cuda.values import ValueSlot, load_source, value_slots
from lowering.plan import MemcpyNode, Plan, walk
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

    A call writes changed addresses and values into the kernel nodes that hold them, and launches.
    Calls from several threads take turns up to the launch; none waits for the device.
    """

    def __init__(self, plan: Plan, device: OpenDevice) -> None:
        self._plan = plan
        self._device = device
        self._driver = device.driver
        self._lock = threading.Lock()
        self._in_flight: deque[tuple[Callable[[], bool], list[Any]]] = deque()
        self._launches = self._updates = self._bytes_copied = 0
        self._driver.activate()
        unit = unit_source(plan)
        values = small_inputs(plan, unit)
        module = self._driver.load(device.compile(plan_source(plan, unit)))
        placement = place(plan, unit, values, self._driver)
        emitted = emit(plan, unit, module, values, placement, self._driver)
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
        self._graph: Any = self._driver.instantiate(emitted.graph)

    def __call__(self, arguments: Sequence[Any]) -> tuple[CudaBuffer, ...]:
        """Run once, and return fresh results in order, without waiting for them.

        Raises:
            TypeError: the number of arguments, or a dtype or shape, is not the Plan's.
            RuntimeError: the executable is closed.
        """
        if len(arguments) != len(self._plan.inputs):
            raise TypeError(
                f"{self._plan.name} takes {len(self._plan.inputs)} arrays, got {len(arguments)}"
            )
        with self._lock:
            if self._graph is None:
                raise RuntimeError(
                    f"the executable of {self._plan.name} is closed; compile it again"
                )
            self._driver.activate()
            return self._run(arguments)

    def _run(self, arguments: Sequence[Any]) -> tuple[CudaBuffer, ...]:
        while self._in_flight and self._in_flight[0][0]():
            self._in_flight.popleft()
        device, driver = self._device, self._driver
        words = None if self._load is None else self._load.values
        bound: Bound | None = None
        addresses = []
        for argument, (type_, slot) in zip(arguments, self._inputs, strict=True):
            if type(argument) is CudaBuffer and argument.driver is driver:
                check_type(argument.type.dtype, argument.type.shape, type_)
                addresses.append(argument.pointer)
            else:
                bound = bound or Bound()
                addresses.append(bind(argument, type_, slot, words, device, bound))
                self._stale_values |= bound.new_values
        results = tuple(
            CudaBuffer(device.pool.take(nbytes), type_, driver) for type_, nbytes in self._outputs
        )
        addresses += [result.pointer for result in results]
        if addresses != self._bound or self._stale_values:
            self._update(addresses)
        driver.launch(self._graph)
        self._launches += 1
        if bound is not None:
            self._bytes_copied += bound.bytes_copied
            if bound.foreign:
                self._in_flight.append((driver.record(), bound.foreign))
        return results

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
            self._driver.update_kernel(self._graph, kernel)
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
            graph, self._graph = self._graph, None
            if graph is not None:
                self._driver.activate()
                self._driver.close(graph)
                self._in_flight.clear()
                self._users = []
                self._load = self._slots = None
                self._bytes_held = 0
