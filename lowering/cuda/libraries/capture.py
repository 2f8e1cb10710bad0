"""Capture: a library's calls become nodes of a graph, and are checked.

Bodies of loops and branches may hold fewer kinds of nodes than a graph. The driver accepts any kind
when it is added, and refuses the whole graph at instantiation without naming a node. So captured
nodes are checked here, where the call and the user's line are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from lowering.cuda.graph.definition import Definition
from lowering.plan.nodes import Node
from lowering.plan.owners import NodeSlots
from tracegraph.user_source import lines_of

LEGAL_IN_BODIES = frozenset({"kernel", "memcpy", "memset", "empty", "graph", "conditional"})
"""The kinds of nodes that a conditional body may hold. At the top of a graph the same are allowed:
whether a call works does not depend on its place."""

LEGAL_OUTSIDE = LEGAL_IN_BODIES | {"host"}
"""The kinds of nodes of a call whose graph has no bodies, as the host drives its loops."""

_REMEDIES = {
    "mem_alloc": "it allocates memory: give it a workspace before the capture",
    "mem_free": "it frees memory: give it a workspace before the capture",
    "pageable_memcpy": "it copies from or to pageable host memory: use pinned or device memory",
    "host": "it calls back to the host",
    "event_record": "it records an event: let it use one stream",
    "wait_event": "it waits for an event: let it use one stream",
}


def capture(
    definition: Definition,
    graph: Any,
    dependencies: Sequence[Any],
    issue: Callable[[], None],
    node: Node,
    slots: NodeSlots,
    addresses: Sequence[int],
    call: str,
    *,
    legal: Set[str] = LEGAL_IN_BODIES,
) -> tuple[Any, ...]:
    """Capture what `issue` puts on the capture stream, and return its last nodes.

    `node` is the node of the Plan, and `call` names it in messages. `addresses` are those of the
    memory that the call uses, and `legal` the kinds of nodes that it may become.

    Raises:
        ValueError: nothing was captured, or a node that no loop or branch may hold.
    """
    ends, kinds = definition.capture(graph, dependencies, issue, slots, addresses)
    illegal = sorted(set(kinds) - legal)
    if kinds and not illegal:
        return ends
    found = f"nodes of kind {', '.join(illegal)}" if illegal else "no nodes"
    reasons = "".join(f"; {_REMEDIES[kind]}" for kind in illegal if kind in _REMEDIES)
    raise ValueError(
        f"{call} at {lines(node)} was captured as {found}{reasons}. Graphs with loops and branches "
        f"may hold {', '.join(sorted(LEGAL_IN_BODIES))} nodes only: compute it outside of the "
        'jitted function, or compile for the device "host"'
    )


def lines(node: Node) -> str:
    """The user's lines of a node."""
    return lines_of(node.sources) or "an unknown line"
