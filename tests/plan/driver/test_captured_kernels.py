"""Captured calls as chains of kernels: what is one, what is not, and parameters found elsewhere."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cuda.bindings")

from cuda.bindings import driver as bindings  # noqa: TID251 - its enumerations alone

from lowering.driver import captured_kernels, error_checks, foreign_captures, graphs
from lowering.driver.captured_kernels import CapturedKernel
from lowering.errors import UnrepeatableCaptureError

OK = bindings.CUresult.CUDA_SUCCESS
STREAM = 5
PLAIN, PROGRAMMATIC = (0, 0, 0), (0, 1, 1)


class Node(int):
    """A node: a number with a kind, a function and edges."""

    kind: str
    function: int
    before: list[tuple[Any, tuple[int, int, int]]]


class Graph:
    """A graph, and a definition of cuda.core whose handle it is."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.handle = self

    def add(self, number: int, before: Any = (), kind: str = "KERNEL", function: int = 7) -> Node:
        node = Node(number)
        node.kind, node.function = kind, function
        node.before = [each if isinstance(each, tuple) else (each, PLAIN) for each in before]
        self.nodes.append(node)
        return node


class Fake:
    """The calls of the driver, as far as captures make them; it captures into `graph`."""

    CUgraphNodeType = bindings.CUgraphNodeType
    CUstreamCaptureStatus = bindings.CUstreamCaptureStatus
    CUresult = bindings.CUresult

    def __init__(self) -> None:
        self.capturing, self.modes = False, 0
        self.graph: Any = None
        self.ends: list[Node] = []

    def cuGraphGetNodes(self, graph: Any, count: int = 0) -> Any:
        return OK, list(reversed(graph.nodes)), len(graph.nodes)

    def cuStreamIsCapturing(self, stream: int) -> Any:
        states = bindings.CUstreamCaptureStatus
        active, none = (
            states.CU_STREAM_CAPTURE_STATUS_ACTIVE,
            states.CU_STREAM_CAPTURE_STATUS_NONE,
        )
        return OK, active if self.capturing else none

    def cuStreamBeginCaptureToGraph(self, stream: int, graph: Any, *rest: Any) -> Any:
        assert stream == STREAM
        self.capturing, self.graph = True, graph
        return (OK,)

    def cuStreamGetCaptureInfo(self, stream: int) -> Any:
        return OK, None, 1, self.graph, self.ends, None, len(self.ends)

    def cuStreamEndCapture(self, stream: int) -> Any:
        self.capturing = False
        return OK, self.graph

    def cuGraphNodeGetType(self, node: Node) -> Any:
        return OK, SimpleNamespace(name=f"CU_GRAPH_NODE_TYPE_{node.kind}")

    def cuGraphNodeGetDependencies(self, node: Node, count: int = 0) -> Any:
        if not count:
            return OK, [], [], len(node.before)
        edges = [SimpleNamespace(from_port=e[0], to_port=e[1], type=e[2]) for _, e in node.before]
        return OK, [each for each, _ in node.before], edges, count

    def cuGraphKernelNodeGetParams(self, node: Node) -> Any:
        return OK, SimpleNamespace(func=node.function, kern=0, of=node)

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> Any:
        self.modes += 1
        return OK, mode


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    fake = Fake()
    for module in (graphs, captured_kernels, foreign_captures):
        monkeypatch.setattr(module, "driver", fake)
    monkeypatch.setattr(error_checks, "driver", SimpleNamespace())
    monkeypatch.setattr(captured_kernels, "GraphDefinition", Graph)
    yield fake
    assert not fake.capturing


def captured(driver: Fake, build: Callable[[Graph], list[Node]], graph: Any = None) -> Any:
    into = graph or Graph()

    def issue() -> None:
        driver.ends = build(driver.graph)

    return captured_kernels.captured_kernels(into, list(into.nodes), issue, STREAM)


def chain(*functions: int, edges: Any = PLAIN, start: int = 10) -> Callable[[Graph], list[Node]]:
    def build(graph: Graph) -> list[Node]:
        before: list[Any] = list(graph.nodes)
        for number, function in enumerate(functions, start):
            node = graph.add(number, before, function=function)
            before = [(node, edges)]
        return graph.nodes[-1:]

    return build


def test_kernels_come_in_the_order_in_which_they_run(driver: Fake) -> None:
    graph = Graph()
    graph.add(1), graph.add(2)
    kernels = captured(driver, chain(7, 8, 9), graph)
    assert [int(kernel.node) for kernel in kernels] == [10, 11, 12]
    assert [kernel.params.of for kernel in kernels] == [10, 11, 12]
    assert [kernel.shape[0] for kernel in kernels] == [7, 8, 9]


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda graph: [], "0 nodes with 0 ends"),
        (lambda graph: [graph.add(10), graph.add(11)], "2 nodes with 2 ends"),
        (lambda graph: [graph.add(10, kind="MEMSET")], "a node of kind memset"),
        (
            lambda graph: [graph.add(12, [graph.add(10), graph.add(11)])],
            "one of its kernels is behind 2 others",
        ),
        (lambda graph: (graph.add(10), [graph.add(11)])[1], "no chain"),
        (lambda graph: [graph.add(11, [graph.add(10, kind="MEMSET")])], "kind memset"),
    ],
)
def test_what_is_no_chain_of_kernels(driver: Fake, build: Any, why: str) -> None:
    with pytest.raises(UnrepeatableCaptureError, match=why):
        captured(driver, build)


def recaptured(driver: Fake, kernels: Any, build: Callable[[Graph], list[Node]]) -> Any:
    def issue() -> None:
        driver.ends = build(driver.graph)

    return captured_kernels.recaptured_parameters(kernels, issue, STREAM)


def test_parameters_of_a_capture_aside_are_those_of_updates(driver: Fake) -> None:
    graph = Graph()
    graph.add(1)
    kernels = captured(driver, chain(7, 8), graph)
    found = recaptured(driver, kernels, chain(7, 8, start=20))
    assert len(graph.nodes) == 3, "nothing is added to the graph"
    assert driver.modes == 2, "others may capture meanwhile"
    for kernel, parameters in zip(kernels, found, strict=True):
        kernel.take(parameters)
    assert [kernel.params.of for kernel in kernels] == [20, 21]
    assert [int(kernel.node) for kernel in kernels] == [10, 11]


@pytest.mark.parametrize(
    "build",
    [chain(7), chain(7, 8, 9), chain(8, 7), chain(7, 8, edges=PROGRAMMATIC)],
    ids=["fewer", "more", "other functions", "other edges"],
)
def test_other_kernels_are_refused(driver: Fake, build: Any) -> None:
    kernels = captured(driver, chain(7, 8))
    with pytest.raises(UnrepeatableCaptureError, match="at other addresses it is other kernels"):
        recaptured(driver, kernels, build)


def test_a_failure_ends_the_capture(driver: Fake) -> None:
    kernels = captured(driver, chain(7))

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        captured_kernels.recaptured_parameters(kernels, fail, STREAM)
    assert not driver.capturing


def test_the_graph_aside_lives_as_long_as_its_parameters_may_be_passed(driver: Fake) -> None:
    (kernel,) = captured(driver, chain(7))
    assert isinstance(kernel, CapturedKernel)
    first = recaptured(driver, [kernel], chain(7, start=20))
    alive = weakref.ref(first[0].graph)
    kernel.take(first[0])
    del first
    driver.graph, driver.ends = None, []
    gc.collect()
    assert alive() is not None
    second = recaptured(driver, [kernel], chain(7, start=30))
    kernel.take(second[0])
    gc.collect()
    assert alive() is None
    assert kernel.params.of == 30
