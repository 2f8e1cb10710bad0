"""Definition: a CUDA graph while it is built, one node at a time.

    new -> open           nodes are added, each together with its slots
    open <-> capturing    a library adds them, on the capture stream
    open -> frozen        complete: neither nodes nor owners are added, and the graph owns those
    frozen -> instantiated
    instantiated -> instantiated  again, unless there are conditional or memory nodes
    frozen -> given away  to others, with its owners
    any -> given up       by a failure: the graph is dropped, and its owners with it
    any -> closed         with the executable

Every other order raises.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import WeakSet

from lowering.cuda.graph.node_names import NodeNames
from lowering.cuda.interface import (
    CapturedKernelHandle,
    Driver,
    GraphMemory,
    KernelNodeHandle,
    Launch,
    NodesView,
)
from lowering.errors import (
    EmittedTwiceError,
    ForeignNodeError,
    InstantiatedTwiceError,
    NoExecutableError,
    NotOpenError,
    RefusedGraphError,
    UnfinishedError,
)
from lowering.plan.owners import NodeSlots, SlotTable
from tracegraph.errors import InstantiationError, UpdateError

if TYPE_CHECKING:
    from lowering.plan.conditional_nodes import ConditionalKind

_T = TypeVar("_T")

Copy = tuple[int, int, int]
"""The address of a target, of a source, and bytes."""

State = Literal[
    "new", "open", "capturing", "frozen", "instantiated", "given away", "given up", "closed"
]


class _GivingUp:
    """Drops the graph of a definition if a step within fails: it must not be used."""

    __slots__ = ("_definition",)

    def __init__(self, definition: Definition) -> None:
        self._definition = definition

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._definition.give_up()


class Definition:
    """The graph of the Plan `name`, whose nodes keep alive what is in `slots`.

    What adds nodes raises `NotOpenError` where none can be added now, and `UnownedAddressError` for
    an address in no memory of the slots.
    """

    def __init__(self, driver: Driver, slots: SlotTable, name: str) -> None:
        self.driver = driver
        self.slots = slots
        self.name = name
        self._state: State = "new"
        self._graph: Any = None
        self._kernels: dict[KernelNodeHandle | CapturedKernelHandle, NodeSlots] = {}
        self.names = NodeNames(driver)
        """What its nodes are to the user."""
        self.bodies: dict[Hashable, tuple[Any, ...]] = {}
        """The bodies of its conditional nodes, by their keys."""
        self._executables: WeakSet[Any] = WeakSet()
        self._hosts = False  # whether it calls functions of the host
        self.single = False
        """Whether it may have one executable only, as with conditional and memory nodes."""
        self.kinds: list[str] = []
        """The kinds of its nodes by the driver's names, in the order that they were added in; those
        of bodies too."""

    @property
    def size(self) -> int:
        """The number of nodes, those of bodies too."""
        return len(self.kinds)

    @property
    def state(self) -> State:
        """What may be done with it now."""
        return self._state

    @contextmanager
    def building(self) -> Iterator[Any]:
        """An empty graph to add nodes to; it is frozen at the end, or dropped if that fails.

        From then on, the graph itself keeps the slots alive.

        Raises:
            EmittedTwiceError: it was built before.
            NotOpenError: a step failed meanwhile.
        """
        if self._state != "new":
            raise EmittedTwiceError(self.name)
        with _GivingUp(self):
            self._graph = self.driver.new_graph()
            self._state = "open"
            yield self._graph
            self._require("open")
            self.slots.freeze()
            self._graph = self.driver.tie(self._graph, self.slots)
            self._state = "frozen"

    def _adding(
        self,
        node: NodeSlots,
        *kinds: str,
        addresses: Iterable[int] = (),
        owners: Iterable[Any] = (),
    ) -> _GivingUp:
        """Within, nodes of these kinds are added, which hold addresses and need `owners`."""
        self._require("open")
        giving_up = _GivingUp(self)
        with giving_up:
            self.slots.retain(*owners)
            self.slots.attach(node, addresses)
        self.kinds += kinds
        return giving_up

    def add(
        self, node: NodeSlots, kind: str, add: Callable[[], Any], owners: Sequence[Any] = ()
    ) -> Any:
        """Add a node that points to nothing but what `owners` keep alive, by a call of the driver:
        one that frees memory of the graph, uses an event, or calls the host.
        """
        with self._adding(node, kind, owners=owners):
            added = add()
            self.names.enter(added, node)
        self._hosts |= kind == "host"
        return added

    def add_kernel(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        launch: Launch,
        values: Sequence[int],
        owned: Sequence[bool],
        node: NodeSlots,
        pdl: Sequence[Any] = (),
    ) -> KernelNodeHandle:
        """Add a kernel node to the graph or a body, and enter what it keeps alive; `pdl` as in
        `Driver.add_kernel`, and the values that are `owned` are addresses.
        """
        addresses = (v for v, keep in zip(values, owned, strict=True) if keep)
        with self._adding(node, "kernel", addresses=addresses):
            handle = self.driver.add_kernel(graph, dependencies, launch, values, pdl)
            self._kernels[handle] = node
            self.names.enter(handle.node, node)
        return handle

    def add_memory(self, graph: Any, nbytes: int, node: NodeSlots) -> GraphMemory:
        """Add a node that allocates memory for each launch, to which other nodes may point.

        Raises:
            MemoryError: there are not as many addresses.
        """
        with self._adding(node, "mem_alloc"):
            memory = self.driver.add_memory(graph, nbytes)
            self.slots.grant(memory)
            self.names.enter(memory.node, node)
        self.single = True
        return memory

    def add_embedded(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        handle: int,
        copies: tuple[Sequence[Copy], Sequence[Copy]],
        node: NodeSlots,
        owned: Sequence[int],
        owners: Sequence[Any],
    ) -> tuple[Any, ...]:
        """Add a clone of somebody's graph, between copies to its memory and copies from it.

        `owners` keep alive that memory, and what the graph points to; the addresses in `owned` are
        of our own memory. Returns the nodes that later work depends on.
        """
        before, (to_it, from_it), add_copy = list(dependencies), copies, self.driver.add_copy
        kinds = (*["memcpy"] * len(to_it), "graph", *["memcpy"] * len(from_it))
        with self._adding(node, *kinds, addresses=owned, owners=owners):
            written = [add_copy(graph, before, *each) for each in to_it]
            child = self.driver.add_child(graph, written or before, handle)
            ends = [add_copy(graph, [child], *each) for each in from_it]
            for added in (*written, child, *ends):
                self.names.enter(added, node)
        return tuple(ends or [child])

    def add_conditional(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        kind: ConditionalKind,
        condition: Any,
        branches: int,
        node: NodeSlots,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Add a conditional node; the node and its bodies."""
        with self._adding(node, "conditional"):
            added = self.driver.add_conditional(graph, dependencies, kind, condition, branches)
            self.names.enter(added[0], node)
        self.bodies[self.driver.node_key(added[0])] = added[1]
        self.single = True
        return added

    def is_top(self, graph: Any) -> bool:
        """Whether it is the graph itself, not a body."""
        return graph is self._graph

    def capture(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        issue: Callable[[], None],
        node: NodeSlots,
        addresses: Sequence[int],
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Capture what `issue` does, which uses memory at `addresses`; as `Driver.capture`."""
        captured = self._captured(
            graph, node, addresses, partial(self.driver.capture, graph, dependencies, issue)
        )
        self.kinds += captured[1]
        return captured

    def add_captured(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        kernels: Sequence[Any],
        node: NodeSlots,
        addresses: Sequence[int],
    ) -> Any:
        """Add copies of kernels that were captured aside, each behind the one before; the last.

        They use memory at `addresses`.
        """
        kinds = ["kernel"] * len(kernels)
        with self._adding(node, *kinds, addresses=addresses, owners=kernels):
            for kernel in kernels:
                added = self.driver.add_captured(graph, dependencies, kernel)
                self.names.enter(added, node)
                dependencies = [added]
        return added

    def capture_kernels(
        self,
        graph: Any,
        dependencies: Sequence[Any],
        issue: Callable[[], None],
        node: NodeSlots,
        addresses: Sequence[int],
    ) -> tuple[CapturedKernelHandle, ...]:
        """Capture what `issue` does as kernels that can be updated; `addresses` are of the memory
        that it uses and that does not move.

        Raises:
            UnrepeatableCaptureError: as `Driver.capture_kernels`.
        """
        kernels = self._captured(
            graph, node, addresses, partial(self.driver.capture_kernels, graph, dependencies, issue)
        )
        self._kernels.update(dict.fromkeys(kernels, node))
        self.kinds += ["kernel"] * len(kernels)
        return kernels

    def _captured(
        self, graph: Any, node: NodeSlots, addresses: Sequence[int], capture: Callable[[], _T]
    ) -> _T:
        self._require("open")
        with _GivingUp(self):
            self.slots.attach(node, addresses)
            self._state = "capturing"
            captured = capture()
            self._require("capturing")  # what is captured may have closed it
            self.names.enter_captured(graph, node)
            self._state = "open"
        return captured

    def instantiate(self) -> Any:
        """An executable of the driver; the first, or one more.

        Raises:
            InstantiatedTwiceError: there is one, and there are conditional or memory nodes.
            UnfinishedError: it is not frozen.
            InstantiationError: the driver refuses, and names a node or a reason.
        """
        try:
            return self._instantiated()
        except RefusedGraphError as refused:
            node = self.names.of(refused.node)
            text = "" if node is None else str(node)
            raise InstantiationError(self.name, text, refused.reason) from refused

    def _instantiated(self) -> Any:
        if self._state == "instantiated":
            if self.single:
                raise InstantiatedTwiceError(self.name)
            executable = self.driver.instantiate(self._graph, hosts=self._hosts)
        elif self._state == "frozen":
            with _GivingUp(self):
                executable = self.driver.instantiate(self._graph, hosts=self._hosts)
            self._state = "instantiated"
        else:
            raise UnfinishedError(self.name, self._state)
        self._executables.add(executable)
        return executable

    def updater(
        self, executable: Any, kernel: KernelNodeHandle | CapturedKernelHandle
    ) -> Callable[[], None]:
        """A function that updates a kernel node in an executable to the parameters at its call.

        Raises:
            NoExecutableError: there is no executable of this graph.
            ForeignNodeError: the node, or the executable, belongs to another one.
        """
        if self._state != "instantiated":
            raise NoExecutableError(self.name, self._state)
        node = self._kernels.get(kernel)
        if node is None or executable not in self._executables:
            raise ForeignNodeError("a kernel node" if node is None else str(node))
        return self.driver.updater(executable, kernel)

    def view(self) -> NodesView:
        """Its nodes and edges, to look at.

        Raises:
            UnfinishedError: it is not complete, or was dropped.
        """
        if self._state not in ("frozen", "instantiated"):
            raise UnfinishedError(self.name, self._state)
        return self.driver.view(self._graph.definition, self.bodies)

    def give_away(self) -> Any:
        """The graph, which others instantiate and launch; it keeps the slots alive by itself.

        Raises:
            UnfinishedError: it is not frozen.
        """
        if self._state != "frozen":
            raise UnfinishedError(self.name, self._state)
        graph = self._graph.definition
        self._drop("given away")
        return graph

    def add_to_capture(self, stream: int) -> None:
        """Give the graph away as a child of the one that other code captures on a stream.

        Raises:
            UnfinishedError: it is not frozen.
            ValueError: the stream belongs to another device.
        """
        if self._state != "frozen":
            raise UnfinishedError(self.name, self._state)
        with _GivingUp(self):
            self.driver.add_to_capture(stream, self._graph.definition)
        self._drop("given away")

    def update_error(
        self, kernel: KernelNodeHandle | CapturedKernelHandle, reason: Exception
    ) -> Exception:
        """What to raise when a kernel node could not be updated, for a `reason`."""
        return UpdateError(self.name, str(self._kernels[kernel]), str(reason))

    def close(self) -> None:
        """Drop everything; what executables point to lives as long as they do."""
        self._drop("closed")

    def _require(self, state: State) -> None:
        if self._state != state:
            raise NotOpenError(self.name, self._state)

    def give_up(self) -> None:
        """Drop the graph: a step has failed."""
        self._drop("given up")

    def _drop(self, state: State) -> None:
        self._graph, self._state = None, state
        self._kernels.clear()
        self._executables.clear()
        self.bodies = {}  # who was given the graph keeps the former
        self.slots = SlotTable()
        self.slots.freeze()
