"""Embedding: somebody's graph as a child graph, between copies of its operands."""

from __future__ import annotations

from typing import Any

from lowering.cuda.graph.emission import Before, Emission
from lowering.cuda.libraries.capture import LEGAL_IN_BODIES
from lowering.cuda.libraries.foreign_calls import naming
from lowering.plan.embedded_graph import EmbeddedGraphNode
from tracegraph.ir.custom_kernels import ForeignMemory

_ILLEGAL = frozenset({"conditional", "mem_alloc", "mem_free"})
"""The kinds of nodes that no child graph may hold."""


def add_embedded(
    emission: Emission, graph: Any, node: EmbeddedGraphNode, before: Before
) -> tuple[Any, ...]:
    """Add the copies and the child graph, whose nodes are checked first.

    Raises:
        CapturedCallError: it holds nodes that it may not, or has no memory of its own.
    """
    foreign, addresses = node.graph, emission.placement.addresses
    count = len(node.arguments)
    own = [array.address(addresses.__getitem__) for array in node.operands]
    with naming(node):
        inputs, outputs = (list(map(_address, each)) for each in (foreign.inputs, foreign.outputs))
        _check(emission.driver.node_kinds(foreign.handle), emission.definition.is_top(graph))
        sizes = [array.nbytes for array in node.operands]
        to_it = list(zip(inputs, own[:count], sizes[:count], strict=True))
        from_it = list(zip(own[count:], outputs, sizes[count:], strict=True))
        return emission.definition.add_embedded(
            graph,
            before.nodes,
            foreign.handle,
            ([c for c in to_it if c[2]], [c for c in from_it if c[2]]),
            emission.owners.of(node),
            own,
            [foreign.owner, *(memory.owner for memory in (*foreign.inputs, *foreign.outputs))],
        )


def _check(kinds: tuple[str, ...], top: bool) -> None:
    """Raise ValueError if a graph that is embedded here may not hold nodes of these kinds."""
    found = set(kinds)
    illegal = sorted(found & _ILLEGAL)
    if illegal:
        raise ValueError(
            f"it has nodes of kind {', '.join(illegal)}, which CUDA allows in no child graph: "
            "launch it by itself"
        )
    illegal = sorted(found - LEGAL_IN_BODIES)
    if illegal and not top:
        raise ValueError(
            f"it has nodes of kind {', '.join(illegal)}, which CUDA allows in no loop or branch: "
            "embed it outside of them"
        )


def _address(memory: ForeignMemory) -> int:
    if memory.address is None:
        raise ValueError(
            f"only the type of its memory is known, {memory.type}: to run on CUDA, give the array "
            "in device memory that the graph reads or writes"
        )
    return memory.address
