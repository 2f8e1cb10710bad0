"""Launch nodes: what a CUDA graph has besides its work, for arguments and memory.

    LoadNode        writes the values of small arguments, which are among its own parameters
    TableNode       writes addresses that bodies read, which are among its own parameters
    PointersNode    writes pointer arrays of library calls, as the table node does
    AllocationNode  allocates scratch for one launch
    FreeNode        frees it

They are roots of the graph, and its end. `lowering.plan.launch_graph` says which of them a Plan
has; no pass and no backend without graphs sees one.
"""

from __future__ import annotations

from typing import ClassVar

from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import Names, Writes
from lowering.plan.nodes import LibraryNode, Node
from tracegraph.inspection.palette import Tone
from tracegraph.ir.record import record
from tracegraph.user_source import Source

_LISTED = 4
"""Buffers that are named in a line; of more, only their number is said."""


class LaunchKernelNode(Node):
    """Base of kernels at the root of a graph, which write what the work reads."""

    __slots__ = ()

    is_kernel: ClassVar[bool] = True
    tone: ClassVar[Tone] = "move"
    graph_nodes: ClassVar[tuple[str, ...]] = ("kernel",)
    noun: ClassVar[str] = "a kernel"

    @property
    def contents(self) -> tuple[str, ...]:
        return (self._listed,)

    @property
    def named(self) -> tuple[Buffer, ...]:
        """The buffers whose values or addresses it writes."""
        raise NotImplementedError

    @property
    def _listed(self) -> str:
        """The first buffers by name, and how many there are besides."""
        names = [str(buffer) for buffer in self.named[:_LISTED]]
        more = len(self.named) - _LISTED
        return ", ".join(names) + (f" and {more} more" if more > 0 else "")


@record
class LoadNode(LaunchKernelNode):
    """Writes small arguments to memory at fixed addresses, where the work reads them.

    `sources` are the lines of the nodes that read them.
    """

    kind: ClassVar[str] = "load"

    inputs: Writes[tuple[Buffer, ...]]
    sources: tuple[Source, ...] = ()

    @property
    def named(self) -> tuple[Buffer, ...]:
        return self.inputs

    @property
    def title(self) -> str:
        return f"load {_counted(len(self.inputs), 'small argument')}"

    @property
    def purpose(self) -> str:
        return f"passes {_counted(len(self.inputs), 'small argument')} by value: {self._listed}"

    @property
    def text(self) -> str:
        return f"load {', '.join(map(str, self.inputs))}"


@record
class TableNode(LaunchKernelNode):
    """Writes the addresses of `entries` to the pointer table, or to a part of it.

    `sources` are the lines of the loops and branches whose bodies read them.
    """

    kind: ClassVar[str] = "table"

    entries: Names[tuple[Buffer, ...]]
    sources: tuple[Source, ...] = ()

    @property
    def named(self) -> tuple[Buffer, ...]:
        return self.entries

    @property
    def title(self) -> str:
        return f"load {_counted(len(self.entries), 'address')}"

    @property
    def purpose(self) -> str:
        many = _counted(len(self.entries), "address")
        return f"loads {many} that bodies read from a table: {self._listed}"

    @property
    def text(self) -> str:
        return f"load addresses of {', '.join(map(str, self.entries))}"


@record
class PointersNode(LaunchKernelNode):
    """Writes the addresses of the matrices of `calls` to their pointer arrays.

    `sources` are the lines of the calls.
    """

    kind: ClassVar[str] = "pointers"

    calls: Names[tuple[LibraryNode, ...]]
    sources: tuple[Source, ...] = ()

    @property
    def named(self) -> tuple[Buffer, ...]:
        found = [array.buffer for node in self.calls for array in node.call.batches]
        return tuple(dict.fromkeys(found))

    @property
    def title(self) -> str:
        return f"load pointers of {_counted(len(self.calls), 'library call')}"

    @property
    def purpose(self) -> str:
        many = _counted(len(self.calls), "library call")
        return f"loads the addresses of matrices for {many}: {self._listed}"

    @property
    def text(self) -> str:
        return f"load pointers to {', '.join(map(str, self.named))}"


class ScratchNode(Node):
    """Base of what allocates and frees the arena of one launch."""

    __slots__ = ()

    tone: ClassVar[Tone] = "move"
    nbytes: int


@record
class AllocationNode(ScratchNode):
    """Allocates the arena of one launch, with the workspace of libraries behind it."""

    kind: ClassVar[str] = "allocation"
    noun: ClassVar[str] = "an allocation"
    graph_nodes: ClassVar[tuple[str, ...]] = ("mem_alloc",)

    nbytes: int
    sources: tuple[Source, ...] = ()

    @property
    def title(self) -> str:
        return f"allocate {self.nbytes:,} B"

    @property
    def purpose(self) -> str:
        return f"allocates {self.nbytes:,} B of scratch for this launch"


@record
class FreeNode(ScratchNode):
    """Frees what the `AllocationNode` of the graph has allocated, behind all that uses it."""

    kind: ClassVar[str] = "free"
    noun: ClassVar[str] = "a free"
    graph_nodes: ClassVar[tuple[str, ...]] = ("mem_free",)

    nbytes: int
    sources: tuple[Source, ...] = ()

    @property
    def title(self) -> str:
        return f"free {self.nbytes:,} B"

    @property
    def purpose(self) -> str:
        return f"frees {self.nbytes:,} B of scratch"


def _counted(count: int, noun: str) -> str:
    """A number and a noun: ``"2 addresses"``."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{count} {noun if count == 1 else plural}"
