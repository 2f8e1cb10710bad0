"""SlotTable: the owners of everything that the nodes of a graph point to, and their memory by name.

The driver copies argument values into a node and keeps no operand alive. A table holds the owners,
and lists those that each node needs. The graph keeps the table alive by a user object, and its
executables keep the graph. When the last of them goes, the objects in the table are released:
memory in stream order, after launches.

Each piece of memory is named once, where it is allocated. What a node keeps alive is found by the
addresses that it holds: so a report cannot say anything else than what the graph points to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lowering.errors import FrozenSlotsError, UnownedAddressError
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.tables import Report, ReportSection, TextTable
from tracegraph.inspection.tabulated import Tabulated


@dataclass(frozen=True, slots=True)
class Slot:
    """One thing that a node keeps alive, such as ``"constant 0 f64[3]"``, and its bytes."""

    what: str
    nbytes: int

    def __str__(self) -> str:
        return f"{self.what} ({self.nbytes:,} B)" if self.nbytes else self.what


@dataclass(frozen=True, slots=True)
class NodeSlots:
    """What one node keeps alive.

    `kind` is that of the node, or ``"memory"``; `lines` are the user's.
    """

    kind: str
    name: str
    lines: str
    slots: tuple[Slot, ...] = ()

    def __str__(self) -> str:
        return f"the {self.kind} node {self.name} at {self.lines or 'an unknown line'}"


@dataclass(frozen=True, slots=True)
class SlotReport(Tabulated):
    """What every node of an executable keeps alive; it holds none of it, and prints as a table.

    `memory` are the named pieces of memory, whether or not a node holds an address in them, and
    `nbytes` the bytes of all allocations that they are part of, with what is between them.

    >>> copy = NodeSlots("kernel", "copy", "model.py:7", (Slot("arena", 4096), Slot("module", 800)))
    >>> print(SlotReport("step", (copy,), 4896))
    step: 1 node, 4,896 bytes kept
    node    name  line        keeps
    kernel  copy  model.py:7  arena (4,096 B), module (800 B)
    """

    name: str
    nodes: tuple[NodeSlots, ...]
    nbytes: int
    memory: tuple[Slot, ...] = ()

    def report(self) -> Report:
        """A row for each node."""
        count = "1 node" if len(self.nodes) == 1 else f"{len(self.nodes)} nodes"
        title = f"{self.name}: {count}, {self.nbytes:,} bytes kept"
        rows = []
        for node in self.nodes:
            keeps = ", ".join(map(str, node.slots)) or "-"
            rows.append((node.kind, node.name, node.lines or "-", keeps))
        return Report.of([ReportSection(title, TextTable(("node", "name", "line", "keeps"), rows))])


class SlotTable:
    """Owners and nodes, added while the graph is built, and frozen before it is instantiated.

    An owner with a `pointer` is an allocation. Every address in a node must be inside one, or in
    memory that the graph itself allocates.

    >>> table = SlotTable()
    >>> table.retain("arena", None)
    >>> table.freeze()
    >>> len(table)
    1
    """

    __slots__ = ("__weakref__", "_frozen", "_granted", "_named", "_nodes", "_owners", "_ranges")

    def __init__(self) -> None:
        self._owners: tuple[Any, ...] = ()
        self._granted: tuple[Any, ...] = ()
        self._ranges: list[tuple[int, int]] = []  # of the addresses of these
        self._named: list[tuple[int, Slot]] = []  # pieces of memory by address
        self._nodes: list[NodeSlots] = []
        self._frozen = False

    def retain(self, *owners: Any) -> None:
        """Hold `owners` from now on; None and owners that are held already are skipped.

        Raises:
            FrozenSlotsError: the table is frozen.
        """
        if self._frozen:
            raise FrozenSlotsError
        for owner in owners:
            if owner is not None and owner not in self:
                self._owners += (owner,)

    def name(self, what: str, pointer: int, nbytes: int) -> None:
        """Name a piece of an owner's memory; of two that overlap, the first has the addresses.

        Raises:
            FrozenSlotsError: the table is frozen.
            UnownedAddressError: it is not inside the memory of one owner.
        """
        if self._frozen:
            raise FrozenSlotsError
        last, ranges = pointer + max(nbytes, 1) - 1, map(_range, self._owners)
        if not any(start <= pointer <= last < end for start, end in ranges):
            raise UnownedAddressError(what, pointer)
        self._named.append((pointer, Slot(what, nbytes)))

    def grant(self, memory: Any) -> None:
        """Allow addresses in memory that the graph itself allocates, which needs no owner.

        Raises:
            FrozenSlotsError: the table is frozen.
        """
        if self._frozen:
            raise FrozenSlotsError
        self._granted += (memory,)

    def attach(self, node: NodeSlots, addresses: Iterable[int] = ()) -> None:
        """Enter a node that is being added, with the addresses that it holds.

        Its slots are those given, which are no memory, and the named pieces that it points to.

        Raises:
            FrozenSlotsError: the table is frozen.
            UnownedAddressError: one of the addresses is in no owner's memory, nor granted.
        """
        if self._frozen:
            raise FrozenSlotsError
        found = [*node.slots]
        for address in addresses:
            self._require_owned(node, address)
            slot = self._at(address)
            if slot is not None and slot not in found:
                found.append(slot)
        self._nodes.append(NodeSlots(node.kind, node.name, node.lines, tuple(found)))

    def _require_owned(self, node: NodeSlots, address: int) -> None:
        if len(self._ranges) < len(self._owners) + len(self._granted):
            self._ranges = [_range(each) for each in (*self._owners, *self._granted)]
        for start, end in self._ranges:
            if start <= address < end:
                return
        raise UnownedAddressError(str(node), address)

    def _at(self, address: int) -> Slot | None:
        """The named piece that an address is in."""
        for pointer, slot in self._named:
            if pointer <= address < pointer + slot.nbytes:
                return slot
        return None

    def freeze(self) -> None:
        """Allow no further owners and nodes."""
        self._frozen = True

    @property
    def frozen(self) -> bool:
        """Whether the table is complete."""
        return self._frozen

    @property
    def nbytes(self) -> int:
        """The memory of all owners."""
        return sum(map(size_of, self._owners))

    def report(self, name: str) -> SlotReport:
        """What the nodes keep alive, without keeping it alive."""
        memory = tuple([slot for _, slot in self._named])
        return SlotReport(name, tuple(self._nodes), self.nbytes, memory)

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, owner: object) -> bool:
        return any(owner is held for held in self._owners)


def size_of(owner: Any) -> int:
    """The bytes of an allocation in device or pinned host memory; 0 for other objects."""
    if not hasattr(owner, "pointer"):
        return 0
    return int(owner.nbytes if hasattr(owner, "nbytes") else owner.bytes.nbytes)


def _range(owner: Any) -> tuple[int, int]:
    """The first address of an allocation, and the end of its memory; one of 0 bytes has its first
    address. Other objects have none.
    """
    pointer = getattr(owner, "pointer", None)
    return (0, 0) if pointer is None else (pointer, pointer + max(size_of(owner), 1))
