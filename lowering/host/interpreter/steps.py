"""The steps of graphs: kernels, library calls, copies, and conditional nodes as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from lowering.host.arena import Array
from lowering.host.interpreter.frame import Frame, Step
from lowering.host.interpreter.instructions import Condition, Instruction, View
from lowering.host.interpreter.nest_program import NestProgram
from lowering.host.interpreter.programs import Programs
from lowering.host.section_times import SectionTimes
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.event_node import EventNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Predicate
from lowering.plan.nodes import Graph, HostNode, KernelNode, MemcpyNode, Node
from lowering.plan.persistent_kernel import PersistentKernelNode
from tracegraph.ir.events import TimeMark
from tracegraph.ops.callbacks import CCall

if TYPE_CHECKING:
    from random import Random


class GraphSteps:
    """Makes the steps of graphs, on the arrays of a frame.

    With `order`, the nodes of a graph run in a new random topological order each time. Wrong
    results then show that an edge is missing.
    """

    def __init__(
        self,
        programs: Programs,
        frame: Frame,
        workspace: Array,
        order: Random | None,
        section_times: SectionTimes,
    ) -> None:
        self._programs, self._frame, self._workspace = programs, frame, workspace
        self._order, self._section_times = order, section_times

    def of_graph(self, graph: Graph) -> list[Step]:
        """The steps that run a graph."""
        steps = [self._of_node(node) for node in graph.nodes]
        if self._order is None:
            return [step for each in steps for step in each]
        order = _shuffled(graph, self._order)

        def run() -> None:
            for node in order():
                _run(steps[node])

        return [run]

    def _of_node(self, node: Node) -> list[Step]:
        match node:
            case KernelNode():
                return [step for nest in self._programs[node] for step in self._of_nest(nest)]
            case MemcpyNode(target=target, source_buffer=source):
                return [self._frame.call(np.copyto, (_bytes_of(target), _bytes_of(source)))]
            case HostNode():
                return [CCall.of(node.call).run]
            case EventNode(use=TimeMark() as mark):
                return [partial(self._section_times.mark, mark)]
            case EventNode():  # what comes before an event is done
                return []
            case IfElseNode():
                return [self._choice(node)]
            case SwitchNode():
                return [self._branches(node.condition, node.branches)]
            case WhileNode():
                return [self._loop(node)]
            case PersistentKernelNode():
                return self.of_graph(node.graph)
        return [self._frame.call(node.run_host, [_view_of(array) for array in node.operands])]

    def _choice(self, node: IfElseNode) -> Step:
        conditions, condition = self._frame.conditions, node.condition
        then, otherwise = self.of_graph(node.then), self.of_graph(node.otherwise)
        return lambda: _run(then if conditions[condition] else otherwise)

    def _branches(self, condition: int, graphs: Sequence[Graph]) -> Step:
        """A step that runs the graph whose number is the condition, if there is one."""
        conditions, branches = self._frame.conditions, list(map(self.of_graph, graphs))

        def choose() -> None:
            if 0 <= (chosen := int(conditions[condition])) < len(branches):
                _run(branches[chosen])

        return choose

    def _loop(self, node: WhileNode) -> Step:
        frame, condition, body = self._frame, node.condition, self.of_graph(node.body)
        conditions = frame.conditions
        entered = None if node.entry is None else frame.number(_element(node.entry))

        def loop() -> None:
            if entered is not None:
                conditions[condition] = entered()
            while conditions[condition]:
                if frame.check_time is not None:
                    frame.check_time()
                for step in body:
                    step()

        return loop

    def _of_nest(self, program: NestProgram) -> list[Step]:
        for value, start in program.starts.items():
            self._frame.put(value, np.ndarray(value.shape, value.dtype, self._workspace, start))
        steps = list(map(self._of_instruction, program.instructions))
        if not program.predicates:
            return steps
        tests = list(map(self._test, program.predicates))

        def run() -> None:
            if all(test() for test in tests):
                _run(steps)

        return [run]

    def _of_instruction(self, instruction: Instruction) -> Step:
        frame, function, inputs = self._frame, instruction.function, instruction.inputs
        output = instruction.output
        if isinstance(output, Condition):
            number, conditions, position = frame.number(*inputs), frame.conditions, output.number
            return lambda: conditions.__setitem__(position, number())
        if output is None:
            return frame.call(function, inputs)
        if instruction.kind == "assign":
            return frame.assign(function, inputs, output)
        return frame.call(function, (*inputs, output))

    def _test(self, predicate: Predicate) -> Callable[[], bool]:
        flag, value = self._frame.number(_element(predicate.flag)), predicate.value
        return lambda: bool(flag() == value)


def _run(steps: Sequence[Step]) -> None:
    for step in steps:
        step()


def _view_of(array: StridedArray) -> View:
    """The view of an array inside a buffer."""
    dtype = array.buffer.type.dtype
    strides = tuple(stride * dtype.itemsize for stride in array.strides)
    return View(dtype, array.shape, {}, array.buffer, strides, array.offset * dtype.itemsize)


def _bytes_of(buffer: Buffer) -> View:
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
