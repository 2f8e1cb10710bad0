"""NodeNames: what each node of a graph is to the user, so that a refusal can name it."""

from __future__ import annotations

from collections.abc import Hashable
from types import MappingProxyType
from typing import Any

from lowering.cuda.interface import Driver, NodeView
from lowering.plan.owners import NodeSlots


class NodeNames:
    """The slots of every node, bodies included, by the driver's key of the node."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._nodes: dict[Hashable, NodeSlots] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def enter(self, added: Any, node: NodeSlots) -> None:
        """Enter a node that was added."""
        self._nodes[self._driver.node_key(added)] = node

    def enter_captured(self, graph: Any, node: NodeSlots) -> None:
        """Enter all nodes of a graph that have no name yet: a capture has just added them."""
        for key in self._driver.node_keys(graph):
            self._nodes.setdefault(key, node)

    def of(self, key: Hashable | None) -> NodeSlots | None:
        """The node with a key; None if that is None, or of another graph."""
        return None if key is None else self._nodes.get(key)


def described(number: int, view: NodeView, names: NodeNames) -> dict[str, Any]:
    """The fields of a `GraphNode` for a node of a graph whose nodes have these names."""
    named = names.of(view.key)
    name = "" if named is None else named.kind if named.name == "-" else named.name
    return {
        "number": number,
        "kind": view.kind,
        "name": name,
        "line": "" if named is None else named.lines,
        "parent": view.parent,
        "branch": view.branch,
        "details": MappingProxyType(dict(view.details)),
    }
