"""Exec parameter updates: the addresses that calls write into the kernel nodes of a graph.

Our own kernels have them as parameters. Those of recaptured library calls get parameters that the
library finds for them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from itertools import chain, compress
from operator import ne
from typing import TYPE_CHECKING, Any

from lowering.cuda.graph.built_graph import Users
from lowering.cuda.interface import CapturedKernelHandle, KernelNodeHandle
from lowering.plan.nests.buffer import Buffer

if TYPE_CHECKING:
    from lowering.cuda.libraries.recapture import RecapturedCall

Update = Callable[[], None]
"""Gives one kernel node its present parameters, as `Driver.updater` makes it."""

KernelHandle = KernelNodeHandle | CapturedKernelHandle

_ALL = slice(None)


class AddressWords:
    """The addresses of a graph's arguments and results, and the kernel parameters that are one.

    All nodes share the words: a call writes them once, however many nodes of whichever executable
    it has to update then.
    """

    def __init__(
        self,
        buffers: Sequence[Buffer],
        users: Users,
        addresses: Sequence[int],
        load: KernelNodeHandle | None,
        recaptured: Sequence[RecapturedCall] = (),
    ) -> None:
        """The nodes hold these `addresses` now; the `load` node, if any, holds none of them.

        Those of `recaptured` calls also hold them, or placeholders instead of null.
        """
        self.words: Any = (ctypes.c_uint64 * len(buffers))(*addresses)
        self.kernels: list[dict[KernelHandle, None]] = []
        self.load = load
        self.recaptured = [(call, [*map(buffers.index, call.buffers)]) for call in recaptured]
        for number, buffer in enumerate(buffers):
            own = users.get(buffer, ())
            for kernel, position in own:
                kernel.share(position, self.words, number)
            self.kernels.append({kernel: None for kernel, _ in own})
        for call, numbers in self.recaptured:
            for number in numbers:
                self.kernels[number].update(dict.fromkeys(call.kernels))

    def updates(self, updater: Callable[[KernelHandle], Update]) -> ExecUpdates:
        """Those of one executable, whose nodes hold the first addresses."""
        return ExecUpdates(self, updater)


class ExecUpdates:
    """The updates of the nodes of one executable."""

    def __init__(self, words: AddressWords, updater: Callable[[KernelHandle], Update]) -> None:
        self._words, self._recaptured = words.words, words.recaptured
        kernels = dict.fromkeys(chain.from_iterable(words.kernels))
        made = {kernel: updater(kernel) for kernel in kernels}
        self._of_each = [dict.fromkeys(made[kernel] for kernel in own) for own in words.kernels]
        one_has_all = len(made) == 1 and all(self._of_each)
        self._always = tuple(made.values()) if one_has_all else None
        if words.load is not None:
            made[words.load] = updater(words.load)
        self.load = () if words.load is None else (made[words.load],)
        self._kernels = {update: kernel for kernel, update in made.items()}

    def write(self, before: list[int], addresses: list[int]) -> Collection[Update]:
        """Let nodes that are updated hold these addresses, which differ from those before.

        Returns the updates of the nodes that hold a changed one.

        Raises:
            UpdateError: a library's call cannot be captured there.
        """
        self._words[_ALL] = addresses
        for call, numbers in self._recaptured:
            if any(addresses[number] != before[number] for number in numbers):
                call.bind([addresses[number] for number in numbers])
        if self._always is not None:  # one kernel uses all
            return self._always
        moved = list(compress(self._of_each, map(ne, before, addresses)))
        return moved[0] if len(moved) == 1 else dict.fromkeys(chain.from_iterable(moved))

    def kernel(self, update: Update) -> KernelHandle:
        """The node of an update."""
        return self._kernels[update]
