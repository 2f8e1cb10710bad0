"""StreamGraph: the graph of a Plan for one stream, and the calls that run it there.

Launches on several streams run at the same time, except those that print and those with WHILE
nodes. Two WHILE nodes at a time end in CUDA_ERROR_LAUNCH_FAILED now and then (driver 580.159 on an
H200, also in plain CUDA), after which the process can do nothing more on the device.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from lowering.cuda.calls.address_updates import AddressWords
from lowering.cuda.calls.arguments import Bound, Input, bind
from lowering.cuda.calls.donated_arguments import writable
from lowering.cuda.calls.replicas import MOST, Replicas
from lowering.cuda.graph.built_graph import Buildable, Timers
from lowering.cuda.graph.node_names import described
from lowering.cuda.graph.small_inputs import Values
from lowering.cuda.interface import Allocation, Event, ThreadState
from lowering.cuda.memory.cross_stream import FreeList
from lowering.cuda.memory.pool import CudaBuffer, interned
from lowering.cuda.streams.exclusive_use import ExclusiveUse
from lowering.cuda.streams.in_flight import InFlightLaunch
from lowering.cuda.streams.launch_end import LaunchEnd
from lowering.cuda.streams.stream_state import StreamState
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.owners import SlotReport
from tracegraph.concurrency.locks import holding
from tracegraph.errors import ClosedError, NoGraphError
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.calls.last_call import Handling, LastRun
from tracegraph.staging.graph_view import GraphNode, GraphView

Results = list[CudaBuffer]


def _passed() -> bool:
    """The event behind no launch."""
    return True


class StreamGraph:
    """One graph, launched on one stream only.

    A call writes changed addresses and values into the kernel nodes that hold them, or chooses an
    executable whose nodes hold them already, and launches. It holds the `lock` until then, and
    waits for the device only behind many launches with loops. Without conditional nodes, several
    graphs take the place of the one.

    Raises:
        OutOfMemoryError: the device has not enough memory.
        TimeLimitError: the time of a `time_limit` was up while loops in flight were waited for.
    """

    def __init__(self, compiled: Buildable, stream: StreamState) -> None:
        self.lock = threading.Lock()
        self.holding = holding(self.lock)
        self.launches = self.bytes_copied = 0
        self.used = 0.0
        """The time of its last launch, by `clock`, if the stream is not the default one."""
        # The launches until then, and the copies, of the last launch with copies of arguments.
        self._copies: tuple[int, Sequence[tuple[Input, int]]] = 0, ()
        self._stream, self._is_default = stream, stream.is_default
        self._device = device = compiled.device
        self._name = compiled.name
        self.end: Event | None = _passed
        # Loading, pinning and instantiating may wait in the driver, also for loops.
        device.timeline.settle_loops()
        self._loops = compiled.loops
        self._prints = compiled.prints
        self._exclusive = [device.printing] if self._prints else []
        self._exclusive += [device.looping] if compiled.while_nodes else []
        self._host_driven = compiled.host_driven
        self._build(compiled)
        # Whether nothing has to be noted after a launch: stream order is enough.
        self._untracked = self._is_default and not self._loops and self._effects is None

    def _build(self, compiled: Buildable) -> None:
        stream, values = self._stream, compiled.values
        built = compiled.build(stream)
        self.definition, self._effects = built.definition, built.effects
        self._timers: Timers = built.timers
        self.kinds = built.emitted
        self.memory: tuple[Allocation, ...] = built.memory
        self.needed = built.needed
        scratch, pool = built.scratch, self._device.graph_memory
        self.make_room: Callable[[], None] | None = None
        if scratch is not None:
            self.make_room = partial(pool.make_room, pool.enter(stream.timeline, scratch.nbytes))
        fixed, buffers = built.addresses, (*compiled.inputs, *compiled.fresh)
        loaded = Values([] if built.load is None else built.load.values)
        self.inputs = [
            Input(
                interned(b.type.strong()),
                self._device,
                compiled.name,
                fixed.get(b),
                values.get(b),
                loaded,
                built.alignments.get(b, 1),
            )
            for b in compiled.inputs
        ]
        self.outputs = [(t, size, stream.pool.list_of(size)) for t, size in compiled.results]
        self._aliases = tuple(compiled.aliases.items())
        first = [fixed.get(buffer, 0) for buffer in buffers]
        words = AddressWords(buffers, built.users, first, built.load, built.recaptured)
        most = 1 if self.definition.single else MOST
        waits = self._device.timeline.loops_in_flight
        self.replicas = Replicas(self.definition, words, loaded, first, most, waits)

    @property
    def updates(self) -> int:
        """How many nodes were updated until now."""
        return self.replicas.updated

    def timings(self) -> dict[str, float]:
        """Milliseconds of the timed sections in the last launch, which is waited for.

        Those of one name are added.
        """
        found: dict[str, float] = {}
        with self.holding:
            if not self._timers or not self.launches:
                return found
            self._stream.timeline.settle()
            for section, ends in self._timers.items():
                time = ends["end"].since(ends["start"])
                found[section.name] = found.get(section.name, 0.0) + time
        return found

    def last_run(self, since: float, copied_inputs: Collection[int]) -> LastRun:
        """As `Executable.last_run`; the launch copies the inputs numbered `copied_inputs`."""
        launches, copies = self._copies
        copied: Counter[Input] = Counter()
        for wanted, nbytes in copies if launches == self.launches else ():
            copied[wanted] += nbytes
        current, overwritten = self.replicas.current, {number for _, number in self._aliases}
        handling: list[tuple[Handling, int]] = []
        for number, wanted in enumerate(self.inputs):
            if wanted in copied:
                handling.append(("copied", copied[wanted]))
            elif number in copied_inputs:
                handling.append(("copied by the launch", wanted.type.nbytes))
            elif wanted.slot is not None and current.bound[number] == wanted.address:
                handling.append(("by value", 0))
            else:
                handling.append(("overwritten" if number in overwritten else "in place", 0))
        updated, before = self.replicas.last_update
        return LastRun(
            tuple(handling),
            None if self._is_default else self._stream.driver.stream,
            self.replicas.updated - before if updated >= since else 0,
            len(self.replicas),
        )

    def view(self, device: str) -> GraphView:
        """As `Executable.view`.

        Raises:
            NoGraphError: the host drives its loops, with several graphs.
            ClosedError: it was closed.
        """
        if self._host_driven:
            raise NoGraphError(self._name, "the host drives its loops, with several graphs")
        with self.holding:
            if self.replicas.closed:
                raise ClosedError(self._name)
            self._stream.driver.activate()
            found, names = self.definition.view(), self.definition.names
        nodes = [GraphNode(**described(i, each, names)) for i, each in enumerate(found.nodes)]
        return GraphView(self._name, device, tuple(nodes), found.edges, found.programmatic)

    # What fast calls read

    @property
    def plain(self) -> bool:
        """Whether its launches report nothing, have no loops, and write to fresh memory only."""
        return not (self._loops or self._effects or self._host_driven or self._aliases)

    @property
    def timeline(self) -> Timeline:
        """That of the stream."""
        return self._stream.timeline

    @property
    def device(self) -> str:
        """The name of the device."""
        return self._device.name

    @property
    def thread(self) -> ThreadState:
        """As `Driver.thread`."""
        return self._stream.driver.thread

    @property
    def allocate(self) -> Callable[[int], tuple[Allocation, FreeList]]:
        """As `Pool.allocate`."""
        return self._stream.pool.allocate

    # Calls

    def launch(self, arguments: Sequence[Any], donated: Donated | None = None) -> Results:
        """Run once, and return results in order; as `Executable.launch`."""
        with self.holding:
            if self.replicas.closed:
                raise ClosedError(self._name)
            self._stream.driver.activate()
            return self._run(arguments, donated)

    def launch_into(self, arguments: Sequence[Any], results: Sequence[int]) -> None:
        """Run once; as `CudaExecutable.launch_into`."""
        with self.holding:
            if self.replicas.closed:
                raise ClosedError(self._name)
            self._stream.driver.activate()
            self._run(arguments, None, results)

    def upload(self) -> None:
        """Bring the executable to the device, in stream order, so that launches need not.

        Raises:
            ClosedError: it is closed.
        """
        with self.holding:
            if self.replicas.closed:
                raise ClosedError(self._name)
            driver = self.definition.driver
            driver.activate()
            driver.upload(self.replicas.current.executable)

    def _run(
        self,
        arguments: Sequence[Any],
        donated: Donated | None,
        into: Sequence[int] | None = None,
    ) -> Results:
        stream, bound = self._stream, None
        if not self._is_default:
            self.used = clock()
        if self._aliases:
            arguments, bound, donated = writable(
                arguments, self._aliases, self.inputs, stream, donated
            )
        timeline, replicas = stream.timeline, self.replicas
        addresses = [
            argument.pointer
            for argument in arguments
            if type(argument) is CudaBuffer
            and argument.timeline is timeline
            and argument.pending is None
        ]
        if len(addresses) != len(self.inputs):  # another kind of argument is among them
            bound, addresses = bound or Bound(stream), []
            for argument, wanted in zip(arguments, self.inputs, strict=True):
                addresses.append(bind(argument, wanted, bound))
        timeline.release_held()  # behind refusals: a look at an event may end others' captures
        results = []
        if into is not None:
            addresses += into
        else:
            for type_, size, _ in self.outputs:
                result = CudaBuffer.made(*stream.pool.piece(size), type_, timeline)
                results.append(result)
                addresses.append(result.pointer)
        for output, number in self._aliases:
            results.insert(output, arguments[number])
        if addresses != replicas.current.bound or replicas.values.stale:
            replicas.update(addresses)
        if self.make_room is not None:
            self.make_room()
        cross_stream = bound is not None and bound.cross_stream
        if bound is not None and bound.foreign:
            self._start_holding(bound, results, donated)
        elif self._untracked and not cross_stream and not timeline.in_flight:
            self._start(donated)
        else:
            self._start_in_order(bound, results, donated)
        self.launches += 1
        if bound is not None and bound.copies:
            self._copies = self.launches, bound.copies
            for _, nbytes in bound.copies:
                self.bytes_copied += nbytes
        return results

    # Launching

    def _start_holding(self, bound: Bound, results: Results, donated: Donated | None) -> None:
        """Launch, and hold arrays of others until it has run, whatever interrupts this."""
        timeline, mark = self._stream.timeline, LaunchEnd(self._stream.driver.record)
        try:
            timeline.hold(mark, bound.foreign)
            self._start_in_order(bound, results, donated)
        finally:
            mark.made = True
        mark.end()

    def _start_in_order(
        self, bound: Bound | None, results: Results, donated: Donated | None
    ) -> None:
        """Launch behind what the arguments wait for, and behind the last of exclusive uses."""
        pending = None if bound is None else bound.pending
        cross_stream = () if bound is None else bound.cross_stream
        if self._exclusive:
            self._stream.timeline.make_room()  # before others have to wait for the exclusive uses
        start = partial(self._start_marked, cross_stream, pending, results, donated)
        self._start_alone(self._exclusive, start)

    def _start_alone(
        self, uses: Sequence[ExclusiveUse], start: Callable[[], Event | None]
    ) -> Event | None:
        """Launch, with some uses for itself: a function within a function is faster than an
        `ExitStack`.
        """
        if not uses:
            return start()
        first, *others = uses
        with first.holding:
            first.enter(self._stream.timeline)
            end = self._start_alone(others, start)
            if end is not None:
                first.leave(end)
            return end

    def _start_marked(
        self,
        cross_stream: Sequence[CudaBuffer],
        pending: InFlightLaunch | None,
        results: Results,
        donated: Donated | None,
    ) -> Event | None:
        """Launch, and record an event behind it for work that must follow.

        On the default stream that is done for buffers of other streams that the launch reads; on
        others for all that it uses, since the stream may be destroyed before the event is needed.
        """
        timeline, is_default = self._stream.timeline, self._is_default
        self.end = None
        if is_default and not cross_stream:
            self._start_pending(pending, results, donated)
            return None
        # What the launch uses is marked before: an interrupt may come right after it.
        mark = LaunchEnd(self._stream.driver.record)
        try:
            for buffer in cross_stream:
                buffer.used_at(mark)
            if not is_default:
                timeline.hold(mark, self.definition)
            self._start_pending(pending, results, donated)
        finally:
            mark.made = True
        end = mark.end()
        if is_default:
            return None
        self.end = end
        for result in results:
            result.computed_at(end)
        return end

    def _start_pending(
        self, pending: InFlightLaunch | None, results: Results, donated: Donated | None
    ) -> None:
        """Launch; what has loops is in flight, and results wait for it."""
        timeline = self._stream.timeline
        if self._effects is None and not self._loops and not timeline.in_flight:
            self._start(donated)
            return
        start = partial(self._start, donated)
        pending = timeline.launch(start, self._effects, self._loops, pending)
        for result in results:
            result.pending = pending

    def _start(self, donated: Donated | None) -> None:
        if self._host_driven:
            if donated is not None:
                donated.spent = True  # some of its graphs may run before one fails
            from lowering.cuda.graph.host_driven import drive  # it is asked for by few

            timeline = self._stream.timeline
            prints = timeline.prints if self._prints else None
            drive(self.replicas.current.start, self._effects, prints, timeline)
            return
        try:
            if donated is not None:
                donated.spent = True  # before the launch: an interrupt may come right after it
            self.replicas.current.start()
        except Exception:
            if donated is not None:
                donated.spent = False
            raise

    # The end

    @property
    def slots(self) -> SlotReport:
        """What each node of the graph keeps alive: nothing once it is closed."""
        return self.definition.slots.report(self._name)

    def settle(self) -> None:
        """Wait for its last launch; raises what `Timeline.settle` does."""
        if self._is_default or self.end is None or not self.end():
            self._stream.timeline.settle()

    def close(self) -> None:
        """Free the graph and its memory; nothing in flight may use them. Needs the lock."""
        self.memory, self.make_room, self._timers = (), None, {}
        self.definition.close()
        self.replicas.close()
