"""Errors of building graphs: an operation that the present state does not allow.

They indicate a defect of this package or of a backend, not of the user's function; errors that a
user can cause are in `tracegraph.errors`.
"""

from __future__ import annotations

from collections.abc import Hashable


class BuildStateError(RuntimeError):
    """A graph, a slot table or a capture is in a state that does not allow the operation."""


class FrozenSlotsError(BuildStateError):
    """An owner or a node was added to a slot table that an executable may use already."""

    def __init__(self) -> None:
        super().__init__(
            "the slot table is frozen: an executable may already use it; "
            "owners and nodes must be added before the graph is instantiated"
        )


class UnownedAddressError(BuildStateError):
    """A node was to point to memory that nothing in its slot table keeps alive."""

    def __init__(self, node: str, address: int) -> None:
        super().__init__(
            f"{node} points to address {address:#x}, which no owner in the slot table covers; "
            "retain the allocation before the node is added"
        )


class EmittedTwiceError(BuildStateError):
    """A definition that has nodes already was to be filled again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the graph of {name} is emitted already; begin with a new definition")


class NotOpenError(BuildStateError):
    """A node was added to a definition that takes none."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(
            f"the graph of {name} takes no nodes: it is {state}; add them after it was opened, "
            "outside of captures, and before it is frozen"
        )


class UnfinishedError(BuildStateError):
    """A definition was to be instantiated before it was complete, or after it was given up."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(
            f"the graph of {name} cannot be instantiated: it is {state}; emit all nodes and freeze "
            "it first, and begin anew after a failure"
        )


class InstantiatedTwiceError(BuildStateError):
    """A definition was to be instantiated again; with conditional or memory nodes it cannot be."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the graph of {name} is instantiated already, and may have one executable; compile "
            "the plan again for another"
        )


class NoExecutableError(BuildStateError):
    """An executable was to be updated by a definition that has none, or none any more."""

    def __init__(self, name: str, state: str) -> None:
        super().__init__(
            f"the graph of {name} has no executable to update: it is {state}; update between its "
            "instantiation and its end"
        )


class NestedCaptureError(BuildStateError):
    """A capture was begun on a stream that is being captured."""

    def __init__(self) -> None:
        super().__init__(
            "a capture is open on the capture stream of the device; end it before the next begins"
        )


class UnrepeatableCaptureError(RuntimeError):
    """A call cannot be given other addresses: captured there, it is not the same chain of kernels.

    The Plan can do without, by copies at fixed addresses.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"a captured call cannot be given other addresses: {what}; "
            "TRACEGRAPH_FEATURES=no-library-updates lets it have copies instead"
        )


class ClosedGraphError(BuildStateError):
    """An executable graph was launched or updated after it had been closed."""

    def __init__(self) -> None:
        super().__init__("the executable graph is closed; instantiate another one")


class ForeignNodeError(BuildStateError):
    """An executable was to be updated by a node of another graph."""

    def __init__(self, node: str) -> None:
        super().__init__(
            f"{node} does not belong to the graph of the executable; update an executable by the "
            "handles that its own graph gave, and compile again for another topology"
        )


class RefusedGraphError(RuntimeError):
    """The driver refuses a graph, for a `reason`, at the `node` with a key if it names one."""

    def __init__(self, reason: str, node: Hashable | None = None) -> None:
        self.reason, self.node = reason, node
        super().__init__(reason)
