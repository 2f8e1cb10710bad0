"""Instance: the graph of a Plan for one stream, and the calls that run it there.

Launches of several streams run at the same time, but for those that print, and those with WHILE
nodes: two WHILE nodes that run at a time end in CUDA_ERROR_LAUNCH_FAILED now and then (driver
580.159 on an H200, in plain CUDA, too), after which the process can do nothing more on the device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from lowering.cuda.calls.address_updates import Patches
from lowering.cuda.calls.arguments import Bound, Input, bind
from lowering.cuda.calls.donated_arguments import writable
from lowering.cuda.calls.replicas import MOST, Replicas
from lowering.cuda.effects.effects import connect
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.emit import emit
from lowering.cuda.graph.host_driven import drive, host_driven
from lowering.cuda.graph.placement import place
from lowering.cuda.graph.shared_code import Blueprint
from lowering.cuda.graph.small_inputs import Values
from lowering.cuda.interface import Allocation, Event, ThreadState
from lowering.cuda.memory.pool import CudaBuffer, FreeList, interned
from lowering.cuda.streams.in_flight import Flight
from lowering.cuda.streams.stream_state import Lane
from lowering.cuda.streams.timeline import Timeline
from lowering.locks import holding
from lowering.plan.owners import SlotReport, SlotTable
from tracegraph.errors import ClosedError
from tracegraph.staging.donated import Donated

Results = list[CudaBuffer]


def _passed() -> bool:
    """The event behind no launch."""
    return True


class Instance:
    """One graph, launched on the stream of its lane alone.

    A call writes changed addresses and values into the kernel nodes that hold them, or chooses an
    executable whose nodes hold them, and launches. Whoever makes one holds the `lock` up to the
    launch, and waits for the device only behind many launches with loops. Where there are no
    conditional nodes, several graphs take the place of the one.

    Raises:
        OutOfMemoryError: the device has not enough memory.
        TimeLimitError: the time of a `time_limit` was up while loops in flight were waited for.
    """

    def __init__(self, blueprint: Blueprint, lane: Lane) -> None:
        self.lock = threading.Lock()
        self.holding = holding(self.lock)
        self.launches = self.bytes_copied = 0
        self._lane, self._is_home = lane, lane.is_home
        self._device = device = blueprint.device
        self._name = blueprint.plan.name
        self.end: Event | None = _passed
        # Loading, pinning and instantiating may wait in the driver, for loops too.
        device.timeline.settle_loops()
        self._loops = blueprint.loops
        self._prints = bool(blueprint.plan.prints)
        self._turns = [device.printing] if self._prints else []
        self._turns += [device.looping] if self._loops else []
        self._host_driven = not blueprint.features.conditional_nodes
        self._build(blueprint)
        # Behind a launch of such a graph, nobody but the stream knows of it.
        self._unheard = self._is_home and not self._loops and self._effects is None

    def _build(self, blueprint: Blueprint) -> None:
        plan, unit, values, lane = blueprint.plan, blueprint.unit, blueprint.values, self._lane
        graphs = host_driven(lane.driver, plan.conditions) if self._host_driven else lane.driver
        # Between the parts of a launch that the host drives, others may launch.
        share = not self._host_driven
        self.definition = definition = Definition(graphs, SlotTable(), plan.name)
        with definition.building() as graph:
            placement = place(
                plan, unit, values, blueprint.constants, lane, definition, graph, share=share
            )
            self._effects, channels = connect(plan, unit, lane.timeline, definition.slots)
            emitted = emit(
                plan,
                unit,
                blueprint.module,
                values,
                placement,
                channels,
                definition,
                graph,
                blueprint.code_bytes,
                early=blueprint.features.programmatic_edges,
            )
        self.memory: tuple[Allocation, ...] = placement.memory
        self.needed = placement.needed
        scratch, pool = placement.scratch, self._device.graph_memory
        self.make_room: Callable[[], None] | None = None
        if scratch is not None:
            self.make_room = partial(pool.make_room, pool.enter(lane.timeline, scratch.nbytes))
        fixed, buffers = placement.addresses, (*plan.inputs, *blueprint.fresh)
        loaded = Values([] if emitted.load is None else emitted.load.values)
        self.inputs = [
            Input(interned(b.type.strong()), self._device, fixed.get(b), values.get(b), loaded)
            for b in plan.inputs
        ]
        self.outputs = [(t, size, lane.pool.list_of(size)) for t, size in blueprint.results]
        self._aliases = tuple(plan.aliases.items())
        first = [fixed.get(buffer, 0) for buffer in buffers]
        patches = Patches(buffers, emitted.users, first, emitted.load)
        most = 1 if definition.single else MOST
        waits = self._device.timeline.loops_in_flight
        self.replicas = Replicas(self.definition, patches, loaded, first, most, waits)

    @property
    def updates(self) -> int:
        """How many nodes were updated until now."""
        return self.replicas.updated

    # What quick calls know

    @property
    def plain(self) -> bool:
        """Whether its launches are heard of no more, and write to memory of their own."""
        return not (self._loops or self._effects or self._host_driven or self._aliases)

    @property
    def timeline(self) -> Timeline:
        """That of the stream."""
        return self._lane.timeline

    @property
    def thread(self) -> ThreadState:
        """As `Driver.thread`."""
        return self._lane.driver.thread

    @property
    def allocate(self) -> Callable[[int], tuple[Allocation, FreeList]]:
        """As `Pool.allocate`."""
        return self._lane.pool.allocate

    # Calls

    def launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> Results:
        """Run once, and return results in order; as `Executable.launch`."""
        with self.holding:
            if self.replicas.closed:
                raise ClosedError(self._name)
            self._lane.driver.activate()
            return self._run(arguments, donated)

    def _run(self, arguments: Sequence[Any], donated: Donated | None) -> Results:
        lane, bound = self._lane, None
        if self._aliases:
            arguments, bound, donated = writable(
                arguments, self._aliases, self.inputs, lane, donated
            )
        timeline, replicas = lane.timeline, self.replicas
        timeline.let_go()
        addresses = [
            argument.pointer
            for argument in arguments
            if type(argument) is CudaBuffer
            and argument.timeline is timeline
            and argument.flight is None
        ]
        if len(addresses) != len(self.inputs):  # another kind of argument is among them
            bound, addresses = bound or Bound(lane), []
            for argument, wanted in zip(arguments, self.inputs, strict=True):
                addresses.append(bind(argument, wanted, bound))
        results = []
        for type_, size, _ in self.outputs:
            result = CudaBuffer.made(*lane.pool.piece(size), type_, timeline)
            results.append(result)
            addresses.append(result.pointer)
        for output, number in self._aliases:
            results.insert(output, arguments[number])
        if addresses != replicas.current.bound or replicas.values.stale:
            replicas.update(addresses)
        if self.make_room is not None:
            self.make_room()
        borrowed = bound is not None and bound.borrowed
        if self._unheard and not borrowed and not timeline.flights:
            self._start(donated)
        else:
            self._start_in_order(bound, results, donated)
        self.launches += 1
        if bound is not None:
            self.bytes_copied += bound.bytes_copied
            if bound.foreign:
                timeline.hold(lane.driver.record(), bound.foreign)
        return results

    # Launching

    def _start_in_order(
        self, bound: Bound | None, results: Results, donated: Donated | None
    ) -> None:
        """Launch behind what the arguments wait for; some programs take turns."""
        flight = None if bound is None else bound.flight
        borrowed = () if bound is None else bound.borrowed
        if not self._turns:
            self._start_marked(borrowed, flight, results, donated)
            return
        timeline = self._lane.timeline
        timeline.make_room()  # lest others wait for it
        with ExitStack() as mine:
            for turns in self._turns:
                mine.enter_context(turns.turn(timeline))
            end = self._start_marked(borrowed, flight, results, donated)
            if end is not None:
                for turns in self._turns:
                    turns.leave(end)

    def _start_marked(
        self,
        borrowed: Sequence[CudaBuffer],
        flight: Flight | None,
        results: Results,
        donated: Donated | None,
    ) -> Event | None:
        """Launch, and mark the end of it for those who must not come before.

        On the device's own stream that is done for what the launch borrows from other streams;
        elsewhere for all that it uses: the stream may be destroyed before anybody asks.
        """
        lane, timeline, is_home = self._lane, self._lane.timeline, self._is_home
        self.end = None
        if self._effects is not None or self._loops or timeline.flights:
            start = partial(self._start, donated)
            flight = timeline.launch(start, self._effects, self._loops, flight)
            for result in results:
                result.flight = flight
        else:
            self._start(donated)
        if is_home and not borrowed:
            return None
        end = lane.driver.record()
        for buffer in borrowed:
            buffer.used_at(end)
        if is_home:
            return None
        self.end = end
        timeline.hold(end, self.definition)
        for result in results:
            result.computed_at(end)
        return end

    def _start(self, donated: Donated | None) -> None:
        if self._host_driven:
            if donated is not None:
                donated.spent = True  # some of its graphs may run before one fails
            timeline = self._lane.timeline
            prints = timeline.prints if self._prints else None
            drive(self.replicas.current.start, self._effects, prints, timeline)
            return
        try:
            if donated is not None:
                donated.spent = True  # before: an interrupt may come right after the launch
            self.replicas.current.start()
        except Exception:
            if donated is not None:
                donated.spent = False
            raise

    # The end

    @property
    def slots(self) -> SlotReport:
        """What each node of the graph keeps alive: nothing, once it is closed."""
        return self.definition.slots.report(self._name)

    def settle(self) -> None:
        """Wait for its last launch; raises what `Timeline.settle` does."""
        if self._is_home or self.end is None or not self.end():
            self._lane.timeline.settle()

    def close(self) -> None:
        """Free the graph and its memory, which nothing in flight uses. Needs the lock."""
        self.memory, self.make_room = (), None
        self.definition.close()
        self.replicas.close()
