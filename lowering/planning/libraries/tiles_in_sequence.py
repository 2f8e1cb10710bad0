"""Products by tiles and products of a library run one after the other.

Either fills the multiprocessors. Side by side, blocks of the second one begin wherever the first
has ended, several on one multiprocessor while others are idle. Training of a perceptron took 85 us
a step with the derivative of its last layer by tiles beside that of the first by the library, and
68 with one after the other (2,048 rows, H100).
"""

from __future__ import annotations

from itertools import pairwise
from operator import is_

from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nests.tiled_products import tiled_product
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, Node, with_rewritten_bodies


def tiles_in_sequence(graph: Graph) -> Graph:
    """The graph, and its bodies, with edges between products of both kinds, in their order."""
    nodes = [with_rewritten_bodies(node, tiles_in_sequence) for node in graph.nodes]
    kinds = [(at, kind) for at, node in enumerate(nodes) if (kind := _kind(node)) is not None]
    turns = [(first[0], second[0]) for first, second in pairwise(kinds) if first[1] != second[1]]
    edges = graph.edges | set(turns)
    same = edges == graph.edges and all(map(is_, nodes, graph.nodes))
    return graph if same else Graph(tuple(nodes), frozenset(edges))


def _kind(node: Node) -> str | None:
    if isinstance(node, LibraryNode):
        return "library" if isinstance(node.call, MatrixProduct) else None
    if not isinstance(node, KernelNode):
        return None
    is_tiled = any(tiled_product(nest) is not None for nest in node.kernel.nests)
    return "tiles" if is_tiled else None
