"""Calls of the host from native code: what has no native form, run by the plain interpreter.

Each place in the code is a site with a number. Native code calls one function, the trampoline, with
that number. Site 0 is a poll: see `polls`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lowering.host.arena import Array, Workspace
from lowering.host.code import Body, ExecutableMemory
from lowering.host.interpreter.interpreter import interpreted
from lowering.host.interpreter.programs import programs_of
from lowering.host.section_times import SectionTimes
from lowering.native.polls import POLL
from lowering.plan.event_node import EventNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, Nest, SetCondition, Store
from lowering.plan.nodes import Graph, KernelNode, Node, walk
from lowering.plan.plan import Plan
from tracegraph import progress
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.events import TimeMark
from tracegraph.ir.record import replace as changed
from tracegraph.ir.scalar import INDEX
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor

Trampoline = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
"""The C type of the function that native code calls with a site; 0 if it went well.

The code passes the arena besides, which the function ignores: so LLVM knows that it may change.
"""


FRAMES = 5
"""Frames that a call of the host needs to begin: those down to the generator, and one more."""


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node that the host runs."""

    node: Node


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """A check that failed; `failure` is an index into `Plan.failures`."""

    failure: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a loop; the count is in the buffer `count`."""

    monitor: int
    count: Buffer


Site = NodeCall | CheckFailure | Progress


class Sites:
    """The places where code calls the host; `words` are values that both sides read and write."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.words: list[Buffer] = []
        self.bars: dict[int, Buffer] = {}
        self.limited: Buffer | None = None
        """Whether the call has a time limit, where code polls."""

    def add(self, site: Site) -> int:
        """The number of a new site."""
        self.sites.append(site)
        return len(self.sites)

    def word(self, dtype: np.dtype[Any] = INDEX) -> Buffer:
        """A new integer or bool in memory, which native code and the host read and write."""
        self.words.append(Buffer("scratch", -1 - len(self.words), ArrayType(dtype, ())))
        return self.words[-1]

    def bar(self, monitor: int) -> Buffer:
        """The integer in which native code counts the steps of a loop that has a bar."""
        if monitor not in self.bars:
            self.bars[monitor] = self.word()
        return self.bars[monitor]

    def of_nest(self, nest: Nest) -> tuple[int, list[tuple[int, Buffer]]]:
        """The site of a nest, and the conditions that it sets with the words that hold them.

        Predicates are tested before.
        """
        conditions: list[tuple[int, Buffer]] = []
        stores: list[Store] = []
        signals = []
        for signal in getattr(nest, "signals", ()):
            if isinstance(signal, SetCondition):
                buffer = self.word(signal.value.dtype)
                conditions.append((signal.condition, buffer))
                stores.append(Store(buffer, (), signal.value))
            else:
                signals.append(signal)
        given: dict[str, Any] = {"predicates": ()}
        if conditions:
            given |= {"signals": tuple(signals), "stores": (*nest.stores, *stores)}  # type: ignore[union-attr]
        alone = changed(nest, **given)
        return self.add(NodeCall(KernelNode(Kernel("host", (alone,))))), conditions


_NONE = -1
"""The count of a loop that has not begun."""


class HostCalls:
    """The functions of a plan's sites.

    `bind` gives the arguments and results of a call of the plan, of which the sites access
    `arrays`. `failure` is what a site raised.
    """

    def __init__(self, plan: Plan, sites: Sites, memory: ExecutableMemory) -> None:
        self.section_times = SectionTimes()
        self.failure: BaseException | None = None
        self._check_time: Callable[[], None] | None = None
        self.words = {buffer: np.zeros(1, buffer.type.dtype) for buffer in sites.words}
        self.arrays = _arrays_of(sites.sites, plan)
        self._limited = None if sites.limited is None else self.words[sites.limited]
        self._bars = [
            (plan.monitors[number], self.words[word]) for number, word in sites.bars.items()
        ]
        self._bound: dict[Buffer, Array] = {}
        words = {buffer: word.view(np.uint8) for buffer, word in self.words.items()}
        known = {**memory.arrays, **words}
        needed = Workspace()
        programs = {
            number: programs_of(_only(plan, site.node), memory.overlaps, needed)
            for number, site in enumerate(sites.sites)
            if isinstance(site, NodeCall)
        }
        self.workspace = memory.allocate(needed.size)
        self._functions: list[Callable[[], object]] = []
        for number, site in enumerate(sites.sites):
            match site:
                case NodeCall(node=EventNode(use=TimeMark() as use)):
                    self._functions.append(partial(self.section_times.mark, use))
                case NodeCall(node=node):
                    alone = _only(plan, node)
                    code = interpreted(alone, programs[number], known, self.workspace)
                    self._functions.append(partial(_run, code.body, alone.inputs, self._bound))
                case CheckFailure(failure=failure):
                    self._functions.append(partial(_fail, plan, failure))
                case Progress(monitor=monitor, count=count):
                    word = self.words[count]
                    self._functions.append(partial(_report, plan.monitors[monitor], word))

    def bind(self, arrays: Mapping[Buffer, Array]) -> None:
        """The arrays of arguments and results in this call."""
        self._bound.clear()
        self._bound.update(arrays)

    def limit(self, check_time: Callable[[], None] | None) -> None:
        """Call a function at each site of this call, which raises when the time is up."""
        if check_time is not self._check_time:
            self._check_time = check_time
            if self._limited is not None:
                self._limited[0] = check_time is not None

    def reset_bars(self) -> None:
        """Forget the steps of an earlier call."""
        for _, count in self._bars:
            count[0] = _NONE

    def draw_bars(self) -> None:
        """Show the steps of loops that have begun."""
        for monitor, count in self._bars:
            if count[0] != _NONE:
                progress.report(monitor, int(count[0]))

    def call(self, site: int) -> None:
        """Run a site. Raises what that raises, or the error of a time limit that is over."""
        if site != POLL:
            self._functions[site - 1]()
        else:
            self.draw_bars()
        if self._check_time is not None:
            self._check_time()


def trampoline(calls: HostCalls) -> Any:
    """The C function that calls sites, and keeps what they raise.

    The method of a generator is no Python function: a pending signal is handled when the generator
    goes on, inside of its `try`. A function would handle it before.
    """
    runner = _runner(calls)
    next(runner)
    return Trampoline(runner.send)


def _runner(calls: HostCalls) -> Generator[int, int, None]:
    done, is_waiting = 0, True
    while True:
        try:
            while True:
                is_waiting = True
                site = yield done
                is_waiting = False
                calls.call(site)
                done = 0
        except BaseException as failure:
            if is_waiting and isinstance(failure, GeneratorExit):
                return  # it is closed: no site has raised this
            calls.failure, done = failure, 1


def have_room(frames: int = FRAMES) -> None:
    """Raise RecursionError if a call of the host would have too few frames of Python to begin.

    Native code cannot be told of that: the error would be lost, and the generator with it.
    """
    if frames:
        have_room(frames - 1)


def _run(body: Body, inputs: Sequence[Buffer], bound: Mapping[Buffer, Array]) -> None:
    """Run the interpreter's function of one node on the arrays of the call."""
    body([bound[buffer] for buffer in inputs], None)


def _fail(plan: Plan, number: int) -> None:
    raise plan.failures[number].exception()


def _report(monitor: Monitor, count: Array) -> None:
    progress.report(monitor, int(count[0]))


def _only(plan: Plan, node: Node) -> Plan:
    """The plan of one node, whose arguments are all arrays from outside that it accesses."""
    graph = Graph((node,), frozenset())
    accessed = {buffer for each in walk(graph) for buffer in each.accessed_buffers}
    outside = [b for b in (*plan.inputs, *plan.outputs) if b in accessed]
    given = tuple(dict.fromkeys(outside))
    return replace(plan, graph=graph, inputs=given, outputs=(), monitors=())


def _arrays_of(sites: Sequence[Site], plan: Plan) -> frozenset[Buffer]:
    """The arguments and results that sites access."""
    found: set[Buffer] = set()
    for site in sites:
        if isinstance(site, NodeCall):
            found.update(_only(plan, site.node).inputs)
    return frozenset(found)
