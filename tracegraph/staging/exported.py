"""ExportedGraph: a CUDA graph that a function was compiled to, for others to launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Whether a whole executable could be updated, and what stood in the way.

    It is true where the update was made. Otherwise nothing was changed.

    >>> print(UpdateResult(False, "the node was of another type", "the kernel node k0", "m.py:7"))
    refused at the kernel node k0, m.py:7: the node was of another type
    """

    ok: bool
    reason: str = ""
    node: str = ""
    """The node of the other graph; "" if the driver names none."""
    line: str = ""
    """The user's line that it comes from."""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            return "updated"
        place = ", ".join(filter(None, (self.node, self.line)))
        return f"refused{f' at {place}' if place else ''}: {self.reason}"


@dataclass(frozen=True, slots=True, eq=False)
class ExportedGraph:
    """A CUDA graph with its arguments and results; made by `Compiled.export_graph`.

    The graph owns all that it points to, by CUDA user objects: code, constants, scratch, arguments
    and results live as long as it, an executable or a graph made from it, or a launch of one.
    """

    definition: Any
    """A ``cuda.core.graph.GraphDefinition``; ``definition.handle`` is the ``CUgraph``."""
    results: Any
    """What the function returns, each Array in memory that every launch writes to."""
    slots: Any = field(repr=False)
    """What each node keeps alive, as in `Compiled.slots`."""
    given: Any = field(repr=False)
    """What the backend knows of the graph, for `instantiate` and `update`."""

    def instantiate(self) -> Any:
        """An executable of the graph, with `launch`, `upload`, `update`, `close` and its `handle`.

        ``definition.instantiate()`` of cuda.core makes one, too; this one names the node and your
        line if the driver refuses, and can be updated.

        Raises:
            InstantiationError: the driver refuses, as it does for a second executable of a graph
                with loops or branches.
            MemoryError: the driver has not enough memory.
        """
        return self.given.instantiate()

    def update(self, other: ExportedGraph, executable: Any = None) -> UpdateResult:
        """Give executables of this graph all addresses and values of another exported graph.

        Later launches read the arguments of `other` and write to its results; launches in flight go
        on as they are. The executables own what `other` does from then on, and no longer what this
        graph does. CUDA requires the same nodes and edges, as exports of one `Compiled` have; what
        else may differ, it says by a result that names the node.

        Args:
            other: the graph to take over.
            executable: one that other code made of this graph: an object whose ``handle`` is the
                ``CUgraphExec``, such as cuda.core's ``Graph``. Without it, those that `instantiate`
                has made are updated, all that are open.

        Raises:
            NotInstantiatedError: `instantiate` has made none that is open.
            TypeError: `other` is no exported graph.
            ValueError: `other` is on another device.
        """
        return self.given.update(other, executable)  # type: ignore[no-any-return]
