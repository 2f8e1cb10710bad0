"""ExportedGraph: a CUDA graph that a function was compiled to, for others to launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
