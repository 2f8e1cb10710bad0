"""CudaExecutable: a Plan that runs as one launch of one CUDA graph."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import ne
from typing import Any

from lowering.buffer import Buffer
from lowering.codegen import Unit, unit_source
from lowering.cuda.arguments import Bound, Input, bind, check_type
from lowering.cuda.copies import COPY_SOURCE
from lowering.cuda.definition import Definition
from lowering.cuda.device import Flights, Lane, OpenDevice
from lowering.cuda.effects import connect
from lowering.cuda.emit import emit
from lowering.cuda.flight import Flight, later
from lowering.cuda.hostdriven import STORED_CONDITIONS, drive, host_driven, using
from lowering.cuda.in_place import writable
from lowering.cuda.interface import KernelNodeHandle
from lowering.cuda.last_use import LastUse
from lowering.cuda.memory import CudaBuffer, interned, size_class
from lowering.cuda.placement import place
from lowering.cuda.values import ValueSlot, load_source, value_slots
from lowering.features import probed
from lowering.ladder import fit, needed
from lowering.plan import LibraryNode, MemcpyNode, Plan, WhileNode, walk
from lowering.slots import SlotReport
from tracegraph.donated import Donated
from tracegraph.errors import ClosedError
from tracegraph.streams import current_stream


def small_inputs(plan: Plan, unit: Unit) -> dict[Buffer, ValueSlot]:
    """The inputs that may be passed by value, among those that some kernel reads."""
    read = {buffer for code in unit.kernels.values() for buffer in code.parameters}
    read |= {node.source_buffer for node in walk(plan.graph) if isinstance(node, MemcpyNode)}
    # what outputs are written over is memory of its own in any case
    return value_slots([b for b in plan.inputs if b in read and b not in plan.outputs])


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
    Calls from several threads take turns up to the launch; none waits for the device. It serves all
    streams, one after the other: on the device, a launch waits for the last one on another stream.
    """

    def __init__(self, plan: Plan, device: OpenDevice) -> None:
        self._device = device
        self._driver = device.driver
        self._home = device.home
        self._last_use = LastUse(device.timeline)
        self._lock = threading.Lock()
        self._in_flight: Flights = deque()
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
        device.timeline.settle_loops()  # loading and pinning may wait in the driver, for loops too
        module = self._driver.load(code)
        # Between the parts of a launch that the host drives, others may launch.
        share = self.features.conditional_nodes
        placement = place(plan, unit, values, device, share=share)
        self._effects, channels = connect(plan, unit, device.timeline, placement.slots)
        self._special = self._loops or self._effects is not None
        products = any(isinstance(node, LibraryNode) for node in walk(plan.graph))
        shares = (share and (plan.arena_bytes > 0 or products)) or bool(plan.prints)
        self._uses = (self._last_use, device.shared) if shares else (self._last_use,)
        self._definition = Definition(self._graphs, placement.slots, plan.name)
        code_bytes = device.code_bytes(code)
        emitted = emit(
            plan, unit, module, values, placement, channels, self._definition, code_bytes
        )
        self._pieces: dict[Hashable, int] = {
            (device.name, piece.pointer): piece.nbytes for piece in placement.memory
        }
        parameters = 8 * sum(len(kernel.parameters) for kernel in unit.kernels.values())
        self._graph_bytes = code_bytes + parameters
        self._load = emitted.load
        fresh = [buffer for buffer in plan.outputs if buffer.space == "output"]
        fixed, buffers = placement.addresses, (*plan.inputs, *fresh)
        words = None if emitted.load is None else emitted.load.values
        self._inputs = [
            Input(interned(b.type.strong()), device, fixed.get(b), values.get(b), words)
            for b in plan.inputs
        ]
        self._outputs = [(interned(b.type.strong()), size_class(b.type.nbytes)) for b in fresh]
        self._aliases = tuple(plan.aliases.items())
        self._users = [emitted.users.get(buffer, []) for buffer in buffers]
        self._bound = [fixed.get(buffer, 0) for buffer in buffers]
        self._unbound = [-1] * len(buffers)
        self._numbers = range(len(buffers))
        self._stale_values = False
        self._graph: Any = self._definition.instantiate()
        with device.launching:
            device.heap.enter(self)

    def __call__(
        self, arguments: Sequence[Any], donated: Donated | None = None
    ) -> list[CudaBuffer]:
        """Run once, and return fresh results in order, or donated ones, without waiting for them.

        Raises:
            TypeError: the number of arguments, or a dtype or shape, is not the Plan's.
            ClosedError: the executable is closed.
            OutOfMemoryError: the device has not enough memory for the results.
            ValueError: the current stream, or an argument, is on another device.
        """
        if len(arguments) != len(self._inputs):
            raise TypeError(
                f"{self.plan.name} takes {len(self._inputs)} arrays, got {len(arguments)}"
            )
        for argument, wanted in zip(arguments, self._inputs, strict=True):
            if type(argument) is CudaBuffer and argument.type is not wanted.type:
                check_type(argument.type.dtype, argument.type.shape, wanted.type)
        return self.launch(arguments, donated)

    def launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        """The same of as many arguments, where buffers of the device have the right types."""
        chosen = current_stream()
        lane = self._home if chosen is None else self._device.lane(chosen)
        with self._lock:
            if self._graph is None:
                raise ClosedError(self.plan.name)
            self._driver.activate()
            return self._run(arguments, lane, donated)

    def _run(
        self, arguments: Sequence[Any], lane: Lane, donated: Donated | None
    ) -> list[CudaBuffer]:
        while self._in_flight and self._in_flight[0][0]():
            self._in_flight.popleft()
        timeline = lane.timeline
        bound: Bound | None = None
        flight: Flight | None = None
        if self._aliases:
            arguments, bound, donated = writable(
                arguments, self._aliases, self._inputs, lane, donated
            )
        addresses = [
            argument.pointer
            for argument in arguments
            if type(argument) is CudaBuffer
            and argument.timeline is timeline
            and argument.flight is None
        ]
        if len(addresses) != len(self._inputs):  # another kind of argument is among them
            addresses, bound, flight = self._addresses(arguments, lane, bound)
        results, pool = [], lane.pool
        for type_, size in self._outputs:
            try:
                free = pool.lists[size]
                allocation = free.pop()
            except (KeyError, IndexError):
                allocation, free = pool.allocate(size)
            results.append(CudaBuffer(allocation, free, type_, timeline))
            addresses.append(allocation.pointer)
        for output, number in self._aliases:
            results.insert(output, arguments[number])
        if self._loops and self._last_use.timeline is not timeline:
            # driver 580 failed when one graph with loops was in flight on two streams
            self._last_use.settle()
        if addresses != self._bound or self._stale_values:
            self._update(addresses)
        if self._device.has_lanes:
            self._launch_among_streams(lane, bound, flight, results, donated)
        elif self._special or timeline.flights:
            self._launch_watched(lane, flight, results, donated)
        elif donated is None:
            self._graphs.launch(self._graph)
        else:
            self._start(lane, donated)
        self._launches += 1
        if bound is not None:
            self._bytes_copied += bound.bytes_copied
            if bound.foreign:
                self._in_flight.append((lane.driver.record(), bound.foreign))
                self._device.release_orphans()
        return results

    def _addresses(
        self, arguments: Sequence[Any], lane: Lane, bound: Bound | None
    ) -> tuple[list[int], Bound | None, Flight | None]:
        """Where the graph reads each argument, what that needed, and what has to be waited for.

        `bound` has what was bound for them before.
        """
        flight: Flight | None = None
        addresses = []
        for argument, wanted in zip(arguments, self._inputs, strict=True):
            if type(argument) is CudaBuffer and argument.timeline is lane.timeline:
                addresses.append(argument.pointer)
                if argument.flight is not None:
                    flight = later(flight, argument.flight)
            else:
                bound = bound or Bound(lane)
                addresses.append(bind(argument, wanted, bound))
                self._stale_values |= bound.new_values
        return addresses, bound, flight

    def _launch_among_streams(
        self,
        lane: Lane,
        bound: Bound | None,
        flight: Flight | None,
        results: list[CudaBuffer],
        donated: Donated | None,
    ) -> None:
        """Launch behind the last use of the same memory on another stream.

        On streams but the device's own, an event is recorded behind it, for those who come later.
        """
        timeline = lane.timeline
        borrowed: Sequence[CudaBuffer] = ()
        if bound is not None:
            flight, borrowed = later(flight, bound.flight), bound.borrowed
        timeline.make_room()
        with self._device.launching:
            for use in self._uses:
                if use.timeline is not timeline:
                    use.enter(timeline)
            if self._special or timeline.flights:
                self._launch_watched(lane, flight, results, donated)
            else:
                self._start(lane, donated)
            away = lane is not self._home
            if not (away or borrowed):
                return
            event = lane.driver.record()
            for use in self._uses if away else ():
                use.leave(event)
        if away:
            timeline.hold(event, self._definition)
            for result in results:
                result.computed_at(event)
        for buffer in borrowed:
            buffer.used_at(event)

    def _launch_watched(
        self,
        lane: Lane,
        flight: Flight | None,
        results: list[CudaBuffer],
        donated: Donated | None,
    ) -> None:
        """Launch what has effects or loops, or is behind loops."""
        start = partial(self._start, lane, donated)
        flight = lane.timeline.launch(start, self._effects, self._loops, flight)
        for result in results:
            result.flight = flight

    def _start(self, lane: Lane, donated: Donated | None) -> None:
        if self.features.conditional_nodes:
            try:
                if donated is not None:
                    donated.spent = True  # before: an interrupt may come right after the launch
                lane.driver.launch(self._graph)
            except Exception:
                if donated is not None:
                    donated.spent = False
                raise
        else:
            if donated is not None:
                donated.spent = True  # some of its graphs may run before one fails
            timeline = lane.timeline
            graphs = using(self._graphs, lane.driver)
            prints = timeline.prints if self.plan.prints else None
            drive(lambda: graphs.launch(self._graph), self._effects, prints, timeline)

    def finish_call(self) -> None:
        """Wait for a call that another thread is making, up to its launch."""
        with self._lock:
            pass

    def _update(self, addresses: list[int]) -> None:
        """Write what changed into the executable's nodes, each at most once."""
        changed: dict[int, KernelNodeHandle] = {}
        if self._load is not None and self._stale_values:
            changed[id(self._load)] = self._load
        moved = map(ne, addresses, self._bound)
        for number in compress(self._numbers, moved):
            address = addresses[number]
            for kernel, position in self._users[number]:
                kernel.values[position] = address
                changed[id(kernel)] = kernel
        # Should an update fail, no address counts as bound, and the next call writes them all.
        self._bound = self._unbound
        for kernel in changed.values():
            try:
                self._graphs.update_kernel(self._graph, kernel)
            except RuntimeError as reason:
                raise self._definition.update_error(kernel, reason) from reason
        self._bound, self._stale_values = addresses, False
        self._updates += len(changed)

    def __del__(self) -> None:
        # Launches go on without their executable; entering an item in a dict needs no lock.
        if self._in_flight:
            self._device.orphans[id(self._in_flight)] = self._in_flight

    def stats(self) -> Mapping[str, int]:
        """Launches, node updates and bytes copied since compilation, and the graph's bytes.

        Those are of code and node parameters; what the driver adds is not known.
        """
        return {
            "launches": self._launches,
            "updates": self._updates,
            "bytes_copied": self._bytes_copied,
            "graph_bytes": self._graph_bytes,
        }

    def pieces(self) -> Mapping[Hashable, int]:
        """The memory it holds: its own, the arena that it may share, and the graph's."""
        if self.closed:
            return {}
        return {**self._pieces, (self._device.name, id(self)): self._graph_bytes}

    @property
    def slots(self) -> SlotReport:
        """What each node of the graph keeps alive: nothing, once it is closed."""
        return self._definition.slots.report(self.plan.name)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._graph is None

    def close(self) -> None:
        """Free the graph and its memory once it has finished; a later call raises.

        A second close does nothing.
        """
        with self._lock:
            self._close()

    def close_idle(self) -> bool:
        """Close, unless a call is being made; whether it is closed."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self._close()
        finally:
            self._lock.release()
        return True

    def _close(self) -> None:
        if self._graph is not None:
            self._last_use.settle()
            graph, self._graph = self._graph, None
            self._in_flight.clear()
            self._users = []
            self._load = None
            self._definition.close()
            self._graphs.close(graph)
