"""Code generation for graphs: lines for kernels, library calls, copies, and conditional nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.host.evaluation.instructions import View
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.section_times import SectionTimes
from lowering.host.source.array_names import Frame, condition
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.event_node import EventNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Predicate
from lowering.plan.nodes import Graph, HostNode, KernelNode, MemcpyNode, Node
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from tracegraph.ir.events import TimeMark
from tracegraph.ops.callbacks import CCall

if TYPE_CHECKING:
    from random import Random


class GraphWriter:
    """Writes the lines of graphs.

    With `order`, the nodes of a graph run in a new random topological order each time. Wrong
    results then show that an edge is missing.
    """

    def __init__(
        self,
        plan: Plan,
        programs: Mapping[KernelNode, Sequence[NestProgram]],
        frame: Frame,
        write_nest: Callable[[NestProgram], None],
        order: Random | None,
        section_times: SectionTimes,
    ) -> None:
        self._section_times = section_times
        self._programs = programs
        self._write_nest = write_nest
        self._frame = frame
        self._source = frame.source
        self._order = order
        self._conditions = ", ".join(map(condition, range(plan.conditions)))
        if plan.conditions:
            self._source.first(" = ".join((*map(condition, range(plan.conditions)), "0")))

    def write(self, graph: Graph) -> None:
        """Write the lines that run a graph."""
        if self._order is None:
            for node in graph.nodes:
                self._write_node(node)
            return
        order, chosen = self._source.name(_shuffled(graph, self._order)), self._source.variable()
        with self._source.block(f"for {chosen} in {order}():"):
            for number, node in enumerate(graph.nodes):
                with self._source.body(f"if {chosen} == {number}:", self._conditions):
                    self._write_node(node)

    def _write_node(self, node: Node) -> None:
        write = WRITERS.get(type(node))
        if write is not None:
            write(self, node)
        else:
            self.call(node.run_host, *map(view_of, node.operands))

    def write_kernel(self, node: KernelNode) -> None:
        """Write the nests of a kernel."""
        for predicates, nests in groupby(self._programs[node], attrgetter("predicates")):
            with self._predicated(predicates):
                for nest in nests:
                    self._write_nest(nest)

    def write_copy(self, node: MemcpyNode) -> None:
        """Write the copy of a buffer's bytes."""
        self.call(np.copyto, bytes_of(node.target), bytes_of(node.source_buffer))

    def write_host(self, node: HostNode) -> None:
        """Write the call of a C function."""
        call = CCall.of(node.call)
        self._source.line(f"{self._source.name(call.run)}()")

    def write_event(self, node: EventNode) -> None:
        """Write a mark of the time. For an event, nothing: what comes before it is done."""
        if isinstance(node.use, TimeMark):
            mark = partial(self._section_times.mark, node.use)
            self._source.line(f"{self._source.name(mark)}()")
        else:
            self._source.line("pass")

    def write_if_else(self, node: IfElseNode) -> None:
        """Write two branches."""
        self._write_body(f"if {condition(node.condition)}:", node.then)
        self._write_body("else:", node.otherwise)

    def write_switch(self, node: SwitchNode) -> None:
        """Write branches by number."""
        chosen = self._source.variable()  # a branch may hold the same node again
        self._source.line(f"{chosen} = {condition(node.condition)}")
        for position, branch in enumerate(node.branches):
            self._write_body(f"if {chosen} == {position}:", branch)

    def write_while(self, node: WhileNode) -> None:
        """Write a loop."""
        if node.entry is not None:
            flag = _element(node.entry)
            entered = self._frame.number(flag, self._frame.name(flag))
            self._source.line(f"{condition(node.condition)} = {entered}")
        self._frame.enter_loop()
        with self._source.body(f"while {condition(node.condition)}:", self._conditions):
            self._source.line("if check_time is not None: check_time()")
            self.write(node.body)
        self._frame.leave_loop()

    def write_persistent(self, node: PersistentKernelNode) -> None:
        """Write the phases of a kernel."""
        self.write(node.graph)

    def call(self, function: Callable[..., object], *views: View) -> None:
        """Write the call of a function of arrays."""
        names = ", ".join(map(self._frame.name, views))
        self._source.line(f"{self._source.name(function)}({names})")

    def _predicated(self, predicates: tuple[Predicate, ...]) -> AbstractContextManager[None]:
        """Within, lines run if all predicates hold."""
        if not predicates:
            return nullcontext()
        tests = " and ".join(map(self._test, predicates))
        return self._source.body(f"if {tests}:", self._conditions)

    def _test(self, predicate: Predicate) -> str:
        flag, value = _element(predicate.flag), predicate.value
        found = self._frame.number(flag, self._frame.name(flag))
        if isinstance(value, bool):
            return found if value else f"not {found}"
        return f"{found} == {value}"

    def _write_body(self, head: str, graph: Graph) -> None:
        with self._source.body(head, self._conditions):
            self.write(graph)


WRITERS: dict[type[Node], Callable[[GraphWriter, Any], None]] = {
    KernelNode: GraphWriter.write_kernel,
    MemcpyNode: GraphWriter.write_copy,
    HostNode: GraphWriter.write_host,
    EventNode: GraphWriter.write_event,
    IfElseNode: GraphWriter.write_if_else,
    SwitchNode: GraphWriter.write_switch,
    WhileNode: GraphWriter.write_while,
    PersistentKernelNode: GraphWriter.write_persistent,
}
"""What writes the lines of a class of nodes that are not functions of arrays, or are functions of
bytes."""


def view_of(array: StridedArray) -> View:
    """The view of an array inside a buffer."""
    dtype = array.buffer.type.dtype
    strides = tuple(stride * dtype.itemsize for stride in array.strides)
    return View(dtype, array.shape, {}, array.buffer, strides, array.offset * dtype.itemsize)


def bytes_of(buffer: Buffer) -> View:
    """The view of all bytes of a buffer."""
    return View(np.dtype(np.uint8), (buffer.type.nbytes,), {}, buffer, (1,), 0)


def _element(flag: Buffer) -> View:
    return View(flag.type.dtype, (), {}, flag, (), 0)


def _shuffled(graph: Graph, order: Random) -> Callable[[], Iterator[int]]:
    """Positions of the nodes in an order that the edges allow, chosen while the nodes run."""
    before = [{i for i, j in graph.edges if j == node} for node in range(len(graph.nodes))]

    def nodes() -> Iterator[int]:
        done: set[int] = set()
        while len(done) < len(before):
            ready = [n for n in range(len(before)) if n not in done and before[n] <= done]
            chosen = order.choice(ready)
            yield chosen
            done.add(chosen)

    return nodes
