"""Nodes of a Plan's graph, and the protocol that all of them answer.

    Graph := Node* + edges
    Node  := KernelNode | MemcpyNode | LibraryNode | HostNode
           | IfElseNode | SwitchNode | WhileNode      each with body Graphs; conditional_nodes
           | PersistentKernelNode                     a kernel whose phases are a Graph
           | LoadNode | TableNode | PointersNode      in launch graphs only, for arguments
           | AllocationNode | FreeNode                and scratch; launch_nodes
           | …                                        others have a file each beside this one

The order of nodes in a graph is a topological order. The executors ask a node for its arrays, its
`run_host` and what it keeps alive; they distinguish the classes that are control flow, kernels or
copies. Passes that rewrite kernels or schedule loops look for these and leave other nodes as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from itertools import islice
from operator import attrgetter, is_
from typing import Any, ClassVar, Self, get_args

from lowering.plan.calls.library_call import IfSkipped, LibraryCall, StridedArray
from lowering.plan.construct import Construct, Path
from lowering.plan.nests.analysis import nest_reads, nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import (
    HoldsBuffers,
    Names,
    NewBuffers,
    Reads,
    Writes,
    field_types,
    items_of,
)
from lowering.plan.nests.kernel import Kernel
from lowering.plan.nests.kernel_text import kernel_text, nest_line
from lowering.plan.nests.rewriting import rename_in_nest
from lowering.plan.nests.weight import Weight, weight_of
from lowering.plan.nests.work import Work, nests_work
from lowering.plan.owners import Slot
from tracegraph.inspection.drawable import Drawable
from tracegraph.inspection.palette import Tone
from tracegraph.ir.callbacks import HostCall
from tracegraph.ir.record import record, replace
from tracegraph.user_source import Source

_NO_BUFFERS: frozenset[Buffer] = frozenset()


class Node(Drawable, HoldsBuffers):
    """Base of all nodes: frozen records, compared by identity, each one node of one graph.

    All answers are about the node without its bodies, which `walk` visits. The types of its fields
    say what it reads and writes, and what its bodies are. A new kind of node is a subclass that
    overrides what differs, and its kernels or its emission.
    """

    __slots__ = ()

    _displayed_by = "lowering.plan.reports.display"

    kind: ClassVar[str]
    """Names the class in reports: ``"kernel"``, ``"while"``."""

    is_kernel: ClassVar[bool] = False
    """Whether it is one kernel launch, whatever it has inside."""

    is_barrier: ClassVar[bool] = False
    """Whether what is before it in the graph is done when it runs, and what follows waits."""

    tone: ClassVar[Tone] = "plain"
    """The colours of its box in pictures; `noun`, `title` and `contents` are the words."""

    sources: tuple[Source, ...]
    """The user's lines that it comes from."""

    within: tuple[Path, ...] = ()
    """A path for each of the inlined branches and loops that its work came from."""

    construct: Construct | None = None
    """The user's loop or branch that it runs."""

    @property
    def noun(self) -> str:
        """What it is, in sentences: ``"a copy"``."""
        return "a node"

    @property
    def may_be_phase(self) -> bool:
        """Whether it may be a part of a loop in one kernel; others keep their loops out of
        kernels.
        """
        return False

    @property
    def if_skipped(self) -> IfSkipped:
        """What becomes of it in a branch or a loop step that is inlined, and then skipped."""
        return "stays"

    @property
    def exclusive(self) -> Hashable:
        """What it needs for itself while it runs: nodes of a CUDA graph with the same one run one
        at a time. None if it needs nothing.
        """
        return None

    @property
    def graph_nodes(self) -> tuple[str, ...] | None:
        """The kinds of the nodes of a CUDA graph that it becomes, by the driver's names, without
        those of its bodies. None if only its emission shows: `Plan.emitted` has them then.
        """
        return None

    @property
    def accessed_buffers(self) -> frozenset[Buffer]:
        """The buffers that it reads or writes."""
        return self.reads | self.writes

    @property
    def fixed_buffers(self) -> frozenset[Buffer]:
        """Those whose addresses it stores, or that had better not move from launch to launch."""
        return self.accessed_buffers

    @property
    def operands(self) -> tuple[StridedArray, ...]:
        """The arrays that it reads, and then those that it writes: the arguments of `run_host`."""
        items = (*items_of(self, "reads"), *items_of(self, "writes"))
        return tuple([StridedArray.whole(i) if type(i) is Buffer else i for i in items])

    @property
    def run_host(self) -> Callable[..., object]:
        """A function of the operands as NumPy arrays, which writes its results. Control flow, and
        what has no arrays, has an entry in the table of the host instead.
        """
        raise NotImplementedError(f"the host cannot run {self.noun}: give it a run_host")

    @property
    def keeps(self) -> tuple[Slot, ...]:
        """What a graph keeps alive for it, besides memory and the code of kernels."""
        return ()

    @property
    def is_ordered(self) -> bool:
        """Whether the host must see it in program order, as prints and checks."""
        return False

    @property
    def is_rewriting(self) -> bool:
        """Whether others may write to inputs when it runs; it is a barrier then."""
        return False

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The graphs inside."""
        values = [getattr(self, name) for name in _graph_fields(type(self))]
        return tuple([g for each in values for g in (each if type(each) is tuple else (each,))])

    @property
    def body_labels(self) -> tuple[str, ...]:
        """A label for each body."""
        return ()

    @property
    def weight(self) -> Weight:
        """What it does when it runs, for estimates of time: at least it moves its operands."""
        return Weight(nbytes=sum([array.buffer.type.nbytes for array in self.operands]))

    @property
    def work(self) -> Work:
        """What it does when it runs, for comparisons with the device's limits: by default it moves
        its operands, each element once.
        """
        nbytes = sum([array.distinct_bytes for array in self.operands])
        return Work(nbytes, nbytes)

    @property
    def name(self) -> str:
        """Its name among nodes of its kind, in reports of what nodes keep alive."""
        return "-"

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        return self.kind

    @property
    def purpose(self) -> str:
        """Why it is there, if the user's program does not say: ``"frees 8,448 B of scratch"``."""
        return ""

    @property
    def contents(self) -> tuple[str, ...]:
        """What is inside besides bodies, for pictures, in a line each: the nests of a kernel."""
        return ()

    @property
    def text(self) -> str:
        """What a printed Plan says of it, one line or several, bodies left out."""
        return self.title

    def with_bodies(self, graphs: Sequence[Graph]) -> Self:
        """The node with other bodies, in the order of `bodies`."""
        rest, new = iter(graphs), {}
        for name in _graph_fields(type(self)):
            old = getattr(self, name)
            new[name] = tuple(islice(rest, len(old))) if type(old) is tuple else next(rest)
        assert not [*rest]
        return replace(self, **new) if new else self


def _fields_with_graphs(cls: type) -> tuple[str, ...]:
    """The fields that are graphs, or tuples of graphs."""
    types = field_types(cls).items()
    return tuple([name for name, type_ in types if type_ is Graph or Graph in get_args(type_)])


_graph_fields: Callable[[type], tuple[str, ...]] = cache(_fields_with_graphs)


@record
class KernelNode(Node):
    """One kernel launch."""

    kind: ClassVar[str] = "kernel"
    is_kernel: ClassVar[bool] = True
    tone: ClassVar[Tone] = "compute"
    graph_nodes: ClassVar[tuple[str, ...]] = ("kernel",)
    noun: ClassVar[str] = "a kernel"
    if_skipped: ClassVar[IfSkipped] = "idle"

    kernel: Kernel
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()

    @property
    def reads(self) -> frozenset[Buffer]:
        nests = self.kernel.nests
        if len(nests) == 1:  # most
            return nest_reads(nests[0])
        return _NO_BUFFERS.union(*map(nest_reads, nests))

    @property
    def writes(self) -> frozenset[Buffer]:
        nests = self.kernel.nests
        if len(nests) == 1:
            return nest_writes(nests[0])
        return _NO_BUFFERS.union(*map(nest_writes, nests))

    @property
    def weight(self) -> Weight:
        return weight_of(self.kernel.nests)

    @property
    def work(self) -> Work:
        return nests_work(self.kernel.nests)

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def title(self) -> str:
        return f"kernel {self.kernel.name}"

    @property
    def contents(self) -> tuple[str, ...]:
        return tuple(map(nest_line, self.kernel.nests))

    @property
    def text(self) -> str:
        return kernel_text(self.kernel)

    def with_buffers(self, names: NewBuffers) -> Self:
        nests = tuple([rename_in_nest(nest, names) for nest in self.kernel.nests])
        return replace(self, kernel=Kernel(self.kernel.name, nests))


@record
class MemcpyNode(Node):
    """Copies all bytes of `source_buffer` to `target`, both of one size. On CUDA, a kernel does.

    A scratch copy is there for nodes that take fixed addresses: one end is an argument or a result.
    """

    kind: ClassVar[str] = "copy"
    tone: ClassVar[Tone] = "move"
    graph_nodes: ClassVar[tuple[str, ...]] = ("kernel",)
    noun: ClassVar[str] = "a copy"
    name: ClassVar[str] = "copy"

    target: Writes[Buffer]
    source_buffer: Reads[Buffer]
    sources: tuple[Source, ...] = ()
    is_scratch_copy: bool = False

    @property
    def may_be_phase(self) -> bool:
        return True

    @property
    def title(self) -> str:
        return f"copy {self.source_buffer} to {self.target}"

    @property
    def purpose(self) -> str:
        if not self.is_scratch_copy:
            return ""
        into = self.target.space == "scratch"
        moved, way = (self.source_buffer, "to") if into else (self.target, "from")
        return (
            f"each launch copies {moved.type.nbytes:,} B {way} scratch: {moved} {moved.type} "
            "moves, and a node takes a fixed address"
        )

    @property
    def text(self) -> str:
        return f"memcpy {self.target} = {self.source_buffer}"


def _of_call(name: str) -> Any:
    """A property that a node has from its call."""
    return property(attrgetter(f"call.{name}"))


@record
class LibraryNode(Node):
    """A call of a library; on CUDA, the nodes that capturing the call yields."""

    kind: ClassVar[str] = "library"
    tone: ClassVar[Tone] = "library"

    call: Names[LibraryCall]
    sources: tuple[Source, ...] = ()
    within: tuple[Path, ...] = ()
    workspace: int = 0  # the number of the one that it uses, of those of the graph

    noun = _of_call("noun")
    name = _of_call("name")
    title = _of_call("title")
    purpose = _of_call("purpose")
    reads = _of_call("reads")
    writes = _of_call("writes")
    fixed_buffers = _of_call("fixed_buffers")
    operands = _of_call("operands")
    run_host = _of_call("run_host")
    work = _of_call("work")

    @property
    def may_be_phase(self) -> bool:
        return self.call.may_be_phase

    @property
    def exclusive(self) -> Hashable:
        return self.call.exclusive or ("workspace", self.workspace)

    @property
    def if_skipped(self) -> IfSkipped:
        return self.call.if_skipped

    @property
    def keeps(self) -> tuple[Slot, ...]:
        return Slot("library handle", 0), *[Slot(name, 0) for name in self.call.owners]

    @property
    def weight(self) -> Weight:
        nbytes = sum([array.buffer.type.nbytes for array in self.call.operands])
        return Weight(0, nbytes, self.call.operations)

    @property
    def text(self) -> str:
        return f"{self.call.text}{f', workspace {self.workspace}' if self.workspace else ''}"


@record
class HostNode(Node):
    """A call of a C function by the host. Only at the top of a graph.

    It is a barrier: the function may read and write any memory that others have as well.
    """

    kind: ClassVar[str] = "host"
    graph_nodes: ClassVar[tuple[str, ...]] = ("host",)
    noun: ClassVar[str] = "a call of the host"
    is_ordered: ClassVar[bool] = True
    is_barrier: ClassVar[bool] = True
    is_rewriting: ClassVar[bool] = True

    call: HostCall
    sources: tuple[Source, ...] = ()

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def title(self) -> str:
        return f"host {self.call.name}"

    @property
    def keeps(self) -> tuple[Slot, ...]:
        function = Slot(f"function {self.call.name}", 0)
        data = self.call.data
        return (function,) if data is None else (function, Slot("user data", len(data)))


@record
class Graph:
    """Nodes and edges; an edge (i, j) has i < j, both positions in `nodes`."""

    nodes: tuple[Node, ...]
    edges: frozenset[tuple[int, int]]


def walk(graph: Graph) -> Iterator[Node]:
    """Every node of a graph and of the bodies inside."""
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from walk(body)


def launched(graph: Graph) -> Iterator[Node]:
    """Every node of a graph and of the bodies inside, without the phases of kernels."""
    for node in graph.nodes:
        yield from launched_by(node)


def launched_by(node: Node) -> Iterator[Node]:
    """A node, and every node of the bodies inside, without the phases of kernels."""
    yield node
    for body in body_graphs(node):
        yield from launched(body)


def body_graphs(node: Node) -> tuple[Graph, ...]:
    """The bodies of a node that are graphs of their own."""
    return () if node.is_kernel else node.bodies


def with_rewritten_bodies(node: Node, rewrite: Callable[[Graph], Graph]) -> Node:
    """The node with each of the `body_graphs` rewritten; itself if they stay the same."""
    old = body_graphs(node)
    new = tuple(map(rewrite, old))
    return node if all(map(is_, old, new)) else node.with_bodies(new)
