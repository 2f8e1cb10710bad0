"""SlotTable: the owners of everything that the nodes of a graph point to.

The driver copies argument values into a node and keeps no operand alive. A table holds the owners:
the arena, constants, workspaces, the loaded module. It is attached to the graph as the owner of
the kernel operands, so it lives exactly as long as some graph or executable made from it, and the
objects in it are released by whoever drops the last of these, never by a callback of the driver.
"""

from __future__ import annotations

from typing import Any


class SlotTable:
    """Owners, added while nodes are, and frozen before the graph is instantiated.

    >>> table = SlotTable()
    >>> table.retain("arena", None)
    >>> table.freeze()
    >>> len(table)
    1
    """

    __slots__ = ("__weakref__", "_frozen", "_owners")

    def __init__(self) -> None:
        self._owners: tuple[Any, ...] = ()
        self._frozen = False

    def retain(self, *owners: Any) -> None:
        """Hold `owners` from now on; None and what is held already are passed over.

        Raises:
            RuntimeError: the table is frozen.
        """
        if self._frozen:
            raise RuntimeError(
                "the slot table is frozen: an executable may already use it; "
                "owners must be added before the graph is instantiated"
            )
        for owner in owners:
            if owner is not None and not any(owner is held for held in self._owners):
                self._owners += (owner,)

    def freeze(self) -> None:
        """Allow no further owners."""
        self._frozen = True

    @property
    def frozen(self) -> bool:
        """Whether the table is complete."""
        return self._frozen

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, owner: object) -> bool:
        return any(owner is held for held in self._owners)
