"""Captured kernels: a library's call as a chain of kernel nodes, and their parameters elsewhere."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

from cuda.bindings import driver
from cuda.core.graph import GraphDefinition

from lowering.driver.error_checks import called, check
from lowering.driver.foreign_captures import relaxed
from lowering.driver.graphs import capture_nodes, node_kind
from lowering.errors import UnrepeatableCaptureError
from tracegraph.generated.dataclass import dataclass

_Edge = tuple[int, int, int]
"""The ports and the type of an edge: programmatic ones are not as others."""

_NO_EDGE = (-1, -1, -1)


class AsideGraph:
    """A graph that is never run, for the parameters of its nodes; destroyed when this is collected.

    To destroy it must not end somebody's global capture.
    """

    __slots__ = ("__weakref__", "_held")

    def __init__(self) -> None:
        self._held = [GraphDefinition()]
        weakref.finalize(self, _drop, self._held).atexit = False

    @property
    def definition(self) -> GraphDefinition:
        """The graph, to which nothing else refers."""
        return self._held[0]


def _drop(held: list[GraphDefinition]) -> None:
    with relaxed():
        held.clear()


@dataclass(frozen=True, slots=True, eq=False)
class KernelParameters:
    """Parameters of a kernel node, in memory of the graph that it is in."""

    params: Any
    graph: AsideGraph


@dataclass(slots=True, eq=False)
class CapturedKernel:
    """A kernel node that a library's call was captured as.

    An update passes `params`: first those that it was captured with. `shape` are the function and
    the edge from the kernel before, which must not change.
    """

    node: Any
    params: Any
    shape: tuple[int, int, _Edge]
    _taken: KernelParameters | None = field(default=None, repr=False)

    def take(self, parameters: KernelParameters) -> None:
        """Let updates pass these from now on."""
        self.params = parameters.params
        self._taken = parameters  # the params point to memory of its graph


def captured_kernels(
    graph: GraphDefinition, dependencies: Sequence[Any], issue: Callable[[], None], stream: Any
) -> tuple[CapturedKernel, ...]:
    """Capture what `issue` does on a stream, as kernels in order.

    Raises:
        UnrepeatableCaptureError: it is not a chain of kernels.
    """
    tails, added = capture_nodes(graph, dependencies, issue, stream)
    if len(tails) != 1 or not added:
        raise UnrepeatableCaptureError(f"it is {len(added)} nodes with {len(tails)} ends")
    backwards: list[CapturedKernel] = []
    node: Any = tails[0]
    while node is not None:
        kind = node_kind(node)
        if kind != "kernel":
            raise UnrepeatableCaptureError(f"it has a node of kind {kind}")
        before = [
            (dependency, edge)
            for dependency, edge in _dependencies(node)
            if int(dependency) in added
        ]
        if len(before) > 1:
            raise UnrepeatableCaptureError(f"one of its kernels is behind {len(before)} others")
        previous, edge = before[0] if before else (None, _NO_EDGE)
        params = called(driver.cuGraphKernelNodeGetParams, node)
        backwards.append(CapturedKernel(node, params, (int(params.func), int(params.kern), edge)))
        node = previous
    if len(backwards) != len(added):
        raise UnrepeatableCaptureError("its kernels are no chain")
    return tuple(reversed(backwards))


def captured_aside(issue: Callable[[], None], stream: Any) -> tuple[CapturedKernel, ...]:
    """Capture what `issue` does on a stream, as kernels in order, in a graph that these keep.

    What the library ties to that graph stays with it, and is not tied to the graph of copies.

    Raises:
        UnrepeatableCaptureError: it is not a chain of kernels.
    """
    aside = AsideGraph()
    with relaxed():
        found = captured_kernels(aside.definition, (), issue, stream)
    for kernel in found:
        kernel.take(KernelParameters(kernel.params, aside))
    return found


def copied(graph: GraphDefinition, dependencies: Sequence[Any], kernel: CapturedKernel) -> Any:
    """A kernel node like one that was captured, with its attributes, such as clusters."""
    before = list(dependencies)
    node = called(
        driver.cuGraphAddKernelNode, graph.handle, before or None, len(before), kernel.params
    )
    called(driver.cuGraphKernelNodeCopyAttributes, node, kernel.node)
    return node


def recaptured_parameters(
    kernels: Sequence[CapturedKernel], issue: Callable[[], None], stream: Any
) -> Sequence[KernelParameters]:
    """The parameters that `kernels` would have if what `issue` does were captured instead.

    Raises:
        UnrepeatableCaptureError: it is other kernels.
    """
    aside = AsideGraph()
    with relaxed():  # others may capture meanwhile; the first capture was under their rules
        found = captured_kernels(aside.definition, (), issue, stream)
    if [kernel.shape for kernel in found] != [kernel.shape for kernel in kernels]:
        raise UnrepeatableCaptureError("at other addresses it is other kernels")
    return [KernelParameters(kernel.params, aside) for kernel in found]


def _dependencies(node: Any) -> Iterator[tuple[Any, _Edge]]:
    """The nodes that a node is behind, and the edges from these."""
    name = "cuGraphNodeGetDependencies"
    *_, count = check(name, driver.cuGraphNodeGetDependencies(node))
    if count:
        nodes, edges, _ = check(name, driver.cuGraphNodeGetDependencies(node, count))
        for each, edge in zip(nodes, edges, strict=True):
            yield each, (int(edge.from_port), int(edge.to_port), int(edge.type))
