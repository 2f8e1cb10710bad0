"""Graphs as native code: nodes in order, branches and loops as blocks of one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from lowering.native.host_calls import CheckFailure, NodeCall, Progress, Sites
from lowering.native.nests.expressions import NestExpressions
from lowering.native.nests.nest_kinds import write_nest
from lowering.native.nests.operations import Operations
from lowering.native.nests.points import NativeNestWriter
from lowering.native.nests.supported import missing
from lowering.native.parallel import ChunkFunctions
from lowering.native.parts import (
    LARGEST,
    SizedPart,
    grouped,
    size_of_graph,
    size_of_nest,
    size_of_node,
)
from lowering.native.polls import POLLED_WORK, Polls
from lowering.native.products import ProductWriter, has_routines
from lowering.native.signals import Signals
from lowering.native.table import DATA_OFFSET, TRAMPOLINE, Table
from lowering.native.types import memory_parts
from lowering.native.work import CALL
from lowering.native.writer import LONG, Registers, Writer
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.event_node import EventNode
from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer, overlap
from lowering.plan.nests.kernel import Nest, Predicate, PrintNest
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, MemcpyNode, Node
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from tracegraph.ir.events import TimeMark

STOPPED = "stopped"
"""The label of the block that ends the function early."""


class NativeGraphWriter:
    """Writes the instructions of graphs. With `order`, nodes are in a random topological order.

    A large plan has `parts`, written by others of this class: they are functions of their own, with
    the table, the arena and the conditions of the whole.
    """

    def __init__(
        self, plan: Plan, order: Random | None, whole: NativeGraphWriter | None = None
    ) -> None:
        self.plan = plan
        self.writer = Writer()
        self.operations = Operations(self.writer)
        self.table: Table = Table(plan) if whole is None else whole.table
        self.sites: Sites = Sites() if whole is None else whole.sites
        self.parts: list[NativeGraphWriter] = []
        self._has_parts = whole is None and size_of_graph(plan.graph) > LARGEST
        self.polls: Polls = Polls(
            self.writer,
            self.table,
            plan.conditions,
            self._end_if,
            self._limited,
            None if whole is None else whole.polls,
        )
        self.writer.poll = self.polls.after
        self.addresses = Registers(self._address)
        self._order = order
        self._in_loop: bool = whole is not None and whole._in_loop
        self._conditions = Registers(self._condition_address)
        self._signals = Signals(self.writer, self._conditions, self._require, self._publish)
        self._products = ProductWriter(self.writer, self.table, self.addresses)
        if whole is None:
            self.writer.frame.append(f"  %conditions = alloca [{plan.conditions + 2} x i64]")
            for number in range(plan.conditions):
                self.writer.line(f"store i64 0, ptr {self._conditions[number]}")

    def _condition_address(self, number: int) -> str:
        return self.writer.in_frame(f"getelementptr inbounds i64, ptr %conditions, i64 {number}")

    def _address(self, buffer: Buffer) -> str:
        """The address of a buffer: in the arena, or taken from the table."""
        offset = self.plan.offsets.get(buffer)
        if offset is not None:
            return self.writer.in_frame(f"getelementptr inbounds i8, ptr %arena, i64 {offset}")
        place = self.table.place(buffer)
        entry = self.writer.in_frame(f"getelementptr inbounds ptr, ptr %table, i64 {place}")
        found = self.writer.in_frame(f"load ptr, ptr {entry}")
        if buffer.space in ("input", "output"):  # an array object
            data = f"getelementptr inbounds i8, ptr {found}, i64 {DATA_OFFSET}"
            found = self.writer.in_frame(f"load ptr, ptr {self.writer.in_frame(data)}")
        return found

    def write(self, graph: Graph) -> None:
        """Write the nodes of a graph."""
        units = [SizedPart(node, size_of_node(node)) for node in self._in_order(graph)]
        self._in_parts(units, NativeGraphWriter._node)

    def _node(self, node: Node) -> None:
        """Write a node; a poll follows one that works long."""
        write: Callable[[NativeGraphWriter, Any], None] = _WRITERS.get(
            type(node), NativeGraphWriter.call
        )
        before = self.writer.work
        write(self, node)
        work = self.writer.work - before
        if work >= (POLLED_WORK if self._in_loop else LONG):
            self.polls.after(work)
            self.writer.work = before

    def _in_parts(
        self, units: Sequence[SizedPart], write: Callable[[NativeGraphWriter, Any], None]
    ) -> None:
        """Write each unit, here or in parts of a large plan."""
        if not self._has_parts:
            for unit in units:
                write(self, unit.item)
            return
        for apart, group in grouped(units):
            part = NativeGraphWriter(self.plan, self._order, self) if apart else self
            for item in group:
                write(part, item)
            if apart:
                self._call_part(part)

    def _call_part(self, part: NativeGraphWriter) -> None:
        """Write the call of a function of its own."""
        self.parts.append(part)
        arguments = ("ptr %table", "ptr %arena", "ptr %conditions")
        failed = self.writer.call("i64", f"part{len(self.parts)}", *arguments)
        self._end_if(failed)
        self.writer.work += part.writer.work

    def _in_order(self, graph: Graph) -> Sequence[Node]:
        if self._order is None:
            return graph.nodes
        before = [{i for i, j in graph.edges if j == node} for node in range(len(graph.nodes))]
        done: list[int] = []
        while len(done) < len(before):
            ready = [n for n, needs in enumerate(before) if n not in done and needs <= set(done)]
            done.append(self._order.choice(ready))
        return [graph.nodes[number] for number in done]

    # -- nodes ----------------------------------------------------------------------------------

    def kernel(self, node: KernelNode) -> None:
        """Write the nests of a kernel; prints come last."""
        nests = node.kernel.nests
        printing = [nest for nest in nests if isinstance(nest, PrintNest)]
        ordered = (*[nest for nest in nests if nest not in printing], *printing)
        units = [SizedPart(nest, size_of_nest(nest)) for nest in ordered if 0 not in nest.space]
        self._in_parts(units, NativeGraphWriter._predicated_nest)

    def _predicated_nest(self, nest: Nest) -> None:
        self._predicated(nest.predicates, partial(self._nest, nest))

    def _nest(self, nest: Nest) -> None:
        if missing(nest):
            site, conditions = self.sites.of_nest(nest)
            self.call_host(site)
            for condition, word in conditions:
                self._signals.set_condition(condition, self._flag(word))
            return
        run = NestExpressions(self.writer, self.operations, self.addresses)
        parts = (self.writer, self.operations, run, self._signals)
        functions = ChunkFunctions(self.writer, self.table)
        overwrites = self._overwrites(nest)
        write_nest(NativeNestWriter(nest, *parts, overwrites, functions, self._address), nest)

    def _overwrites(self, nest: Nest) -> bool:
        """Whether a nest may write where it reads."""
        offsets, written = self.plan.offsets, nest_writes(nest)
        return any(overlap(one, other, offsets) for one in nest_reads(nest) for other in written)

    def copy(self, node: MemcpyNode) -> None:
        """Write a copy of bytes."""
        target, source = self.addresses[node.target], self.addresses[node.source_buffer]
        self.writer.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        nbytes = node.target.type.nbytes
        arguments = f"ptr {target}, ptr {source}, i64 {nbytes}, i1 false"
        self.writer.line(f"call void @llvm.memmove.p0.p0.i64({arguments})")
        self.writer.work += nbytes // 16

    def library(self, node: LibraryNode) -> None:
        """Write a product as a call of BLAS; all else is a call of the host."""
        if isinstance(node.call, MatrixProduct) and has_routines(node.call):
            self._products.write(node.call)
            self.writer.work += node.weight.operations // 8
        else:
            self.call(node)

    def event(self, node: EventNode) -> None:
        """Write a mark of the time. For an event, nothing: what comes before it is done."""
        if isinstance(node.use, TimeMark):
            self.call(node)

    def call(self, node: Node) -> None:
        """Write a call of the host that runs a node."""
        self.call_host(self.sites.add(NodeCall(node)))
        self.writer.work += node.weight.points + node.weight.operations // 8

    def if_else(self, node: IfElseNode) -> None:
        """Write two branches."""
        chosen = self.writer.assign(f"icmp ne i64 {self._condition(node.condition)}, 0")
        self.writer.if_(chosen, lambda: self.write(node.then), lambda: self.write(node.otherwise))

    def switch(self, node: SwitchNode) -> None:
        """Write branches by number."""
        writer = self.writer
        chosen, end = self._condition(node.condition), writer.label()
        labels = [writer.label() for _ in node.branches]
        cases = " ".join(f"i64 {number}, label %{each}" for number, each in enumerate(labels))
        writer.line(f"switch i64 {chosen}, label %{end} [ {cases} ]")
        for label, branch in zip(labels, node.branches, strict=True):
            writer.begin(label)
            self.write(branch)
            writer.jump(end)
        writer.begin(end)

    def while_(self, node: WhileNode) -> None:
        """Write a loop, which polls now and then."""
        writer = self.writer
        if node.entry is not None:
            self._signals.set_condition(node.condition, self._flag(node.entry))
        head, inside, end = writer.label(), writer.label(), writer.label()
        writer.jump(head)
        writer.begin(head)
        goes_on = writer.assign(f"icmp ne i64 {self._condition(node.condition)}, 0")
        writer.branch(goes_on, inside, end)
        writer.begin(inside)
        outer, self._in_loop = self._in_loop, True
        self.polls.after(writer.measured(lambda: self.write(node.body)))
        self._in_loop = outer
        writer.jump(head)
        writer.begin(end)

    def persistent(self, node: PersistentKernelNode) -> None:
        """Write the nodes of a kernel that stays on a GPU for all of them."""
        self.write(node.graph)

    # -- the host -------------------------------------------------------------------------------

    def call_host(self, site: int) -> None:
        """Call the host; the function ends if that fails."""
        writer = self.writer
        function = self.table.load(writer, TRAMPOLINE)
        self._end_if(writer.assign(f"call i64 {function}(i64 {site}, ptr %arena)"))
        writer.work += CALL

    def _limited(self) -> str:
        if self.sites.limited is None:
            self.sites.limited = self.sites.word()
        return self.addresses[self.sites.limited]

    def _end_if(self, failed: str) -> None:
        """End the function unless an `i64` is 0."""
        following = self.writer.label()
        goes_on = self.writer.assign(f"icmp eq i64 {failed}, 0")
        self.writer.branch(goes_on, following, STOPPED)
        self.writer.begin(following)

    def _require(self, failure: int) -> None:
        self.call_host(self.sites.add(CheckFailure(failure)))

    def _publish(self, monitor: int, count: str) -> None:
        """Store a count. A callback gets every count, and a bar reads the last one at polls."""
        draws = self.plan.monitors[monitor].callback is None
        word = self.sites.bar(monitor) if draws else self.sites.word()
        self.writer.line(f"store i64 {count}, ptr {self.addresses[word]}")
        if not draws:
            self.call_host(self.sites.add(Progress(monitor, word)))

    # -- values ---------------------------------------------------------------------------------

    def _condition(self, number: int) -> str:
        return self.writer.assign(f"load i64, ptr {self._conditions[number]}")

    def _flag(self, flag: Buffer) -> str:
        """The one element of a flag, in 64 bits."""
        (type_,) = memory_parts(flag.type.dtype)
        value = self.writer.assign(f"load {type_}, ptr {self.addresses[flag]}")
        return self.writer.widened(type_, flag.type.dtype.kind == "i", value)

    def _predicated(self, predicates: Sequence[Predicate], body: Callable[[], object]) -> None:
        """Within, instructions run if all predicates hold."""
        holds = "true"
        for predicate in predicates:
            flag = self._flag(predicate.flag)
            same = self.writer.assign(f"icmp eq i64 {flag}, {int(predicate.value)}")
            holds = same if holds == "true" else self.writer.assign(f"and i1 {holds}, {same}")
        self.writer.if_(holds, body)


_WRITERS: dict[type[Node], Callable[[NativeGraphWriter, Any], None]] = {
    KernelNode: NativeGraphWriter.kernel,
    MemcpyNode: NativeGraphWriter.copy,
    LibraryNode: NativeGraphWriter.library,
    EventNode: NativeGraphWriter.event,
    IfElseNode: NativeGraphWriter.if_else,
    SwitchNode: NativeGraphWriter.switch,
    WhileNode: NativeGraphWriter.while_,
    PersistentKernelNode: NativeGraphWriter.persistent,
}
"""What writes each class of nodes; all others are calls of the host."""

WRITTEN = frozenset(_WRITERS)
"""The classes of nodes that are native code, some of them for some of their calls only."""
