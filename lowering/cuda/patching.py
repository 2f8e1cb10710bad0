"""Patching: the addresses that calls write into the kernel nodes of a graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from itertools import chain, compress
from operator import ne
from typing import Any

from lowering.buffer import Buffer
from lowering.cuda.emit import Users
from lowering.cuda.interface import KernelNodeHandle

Update = Callable[[], None]
"""Gives one kernel node its present parameters, as `Driver.updater` makes it."""

_ALL = slice(None)


class Patches:
    """The addresses of a graph's arguments and results, and the kernel nodes that each is in.

    All nodes share the words that hold the addresses: so a call writes them once, however many
    nodes it then has to update.
    """

    def __init__(
        self,
        buffers: Sequence[Buffer],
        users: Users,
        addresses: Sequence[int],
        load: KernelNodeHandle | None,
        updater: Callable[[KernelNodeHandle], Update],
    ) -> None:
        """The nodes hold these `addresses` now; the `load` node, if any, holds none of them."""
        self._words: Any = (ctypes.c_uint64 * len(buffers))(*addresses)
        updates: dict[KernelNodeHandle, Update] = {}
        self._of_each: list[dict[Update, None]] = []
        for number, buffer in enumerate(buffers):
            own: dict[Update, None] = {}
            for kernel, position in users.get(buffer, ()):
                kernel.share(position, self._words, number)
                if kernel not in updates:
                    updates[kernel] = updater(kernel)
                own[updates[kernel]] = None
            self._of_each.append(own)
        one_has_all = len(updates) == 1 and all(self._of_each)
        self._always = tuple(updates.values()) if one_has_all else None
        if load is not None:
            updates[load] = updater(load)
        self.load = () if load is None else (updates[load],)
        self._kernels = {update: kernel for kernel, update in updates.items()}

    def write(self, before: list[int], addresses: list[int]) -> Collection[Update]:
        """Let nodes that are updated hold these addresses, which are not the same as those before.

        Returns the updates of the nodes that one of the others was in.
        """
        self._words[_ALL] = addresses
        if self._always is not None:  # one kernel uses all
            return self._always
        moved = list(compress(self._of_each, map(ne, before, addresses)))
        return moved[0] if len(moved) == 1 else dict.fromkeys(chain.from_iterable(moved))

    def kernel(self, update: Update) -> KernelNodeHandle:
        """The node of an update."""
        return self._kernels[update]
