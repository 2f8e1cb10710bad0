"""Replicas: executables of one graph, each with addresses that calls come back to.

In ``x = f(x)`` two pieces of memory take turns, and so do the results of calls that are dropped one
call later. An executable for each turn has the addresses of its calls already, and a call only
chooses.

One more is made when updates of nodes to addresses seen before have taken the time of instantiating
it: so it costs at most as much as it could have saved by then. Graphs with conditional nodes may
have one executable at a time, says the driver's documentation, and have no replicas.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from lowering.cuda.calls.address_updates import AddressWords, ExecUpdates, Update
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.small_inputs import Values
from lowering.cuda.interface import KernelNodeHandle
from lowering.errors import ClosedGraphError
from tracegraph.errors import ClosedError, DeviceLostError

MOST = 4
"""Two results that are assigned to the names of two arguments come back after four calls."""

UPDATES_PER_NODE = 5
"""As many take the time of instantiating a node: 0.6 and 3 µs were measured on an H200's host."""

_CLOSED = [-1]
"""No addresses are equal to these: a call of a closed graph comes to an update, which raises."""


def _refuse() -> None:
    raise ClosedGraphError


def _refused(kernel: KernelNodeHandle) -> Update:
    return _refuse


@dataclass(slots=True, eq=False)
class Replica:
    """An executable, and the addresses that its nodes hold.

    `start` launches it. A `stale` one lacks the numbers of the last call that had new ones.
    """

    executable: Any
    start: Callable[[], None]
    updates: ExecUpdates
    bound: list[int]
    stale: bool = False


class Replicas:
    """The executables of a definition, of which calls use the `current` one.

    Whoever calls a method holds the lock of the graph. An interrupt at any point leaves what the
    next call sets right: a replica has no addresses while it is written, and `values` are
    stale until the end.
    """

    def __init__(
        self,
        definition: Definition,
        words: AddressWords,
        values: Values,
        addresses: list[int],
        most: int,
        waits: Callable[[], bool],
    ) -> None:
        """The nodes of the definition hold these `addresses`.

        At `most` so many are made of it, and none while instantiating `waits` for loops in flight.
        """
        self._definition, self._words = definition, words
        self._first, self._unbound = addresses, [-1] * len(addresses)
        self._most, self._waits = most, waits
        self.values = values
        self.updated = 0
        """Updates of nodes, of all replicas together."""
        self._left: deque[list[int]] = deque(maxlen=MOST)
        self._spent = 0  # updates to addresses among those that replicas left
        self._turn = 0
        self.current = self._instantiated()
        self._all = [self.current]

    def __len__(self) -> int:
        return len(self._all)

    @property
    def closed(self) -> bool:
        """Whether there are none any more."""
        return not self._all

    def update(self, addresses: list[int]) -> Replica:
        """The replica that has these addresses and the values written last, now the current one.

        Raises:
            ClosedError: they were closed.
            UpdateError: the driver refused. The replica is written as a whole by the next call.
        """
        if self.values.stale:
            for replica in self._all:
                replica.stale = True
        chosen = self._having(addresses)
        if chosen is None:
            chosen = self._given(addresses)
        elif chosen.stale:
            self._write(chosen, addresses)
        self.current = chosen
        self.values.stale = False
        return chosen

    def _having(self, addresses: list[int]) -> Replica | None:
        for replica in self._all:
            if replica.bound == addresses:
                return replica
        return None

    def _given(self, addresses: list[int]) -> Replica:
        """The next replica in turn, or another, with addresses that none has."""
        if not self._all:
            raise ClosedError(self._definition.name)
        returned = len(self._all) < self._most and addresses in self._left
        chosen = self._one_more() if returned else None
        if chosen is None:
            self._turn = (self._turn + 1) % len(self._all)
            chosen = self._all[self._turn]
            self._left.append(chosen.bound)
        before = self.updated
        self._write(chosen, addresses)
        if returned:
            self._spent += self.updated - before
        return chosen

    def _one_more(self) -> Replica | None:
        """Another replica, if it is time."""
        if self._spent < UPDATES_PER_NODE * self._definition.size or self._waits():
            return None
        self._spent = 0
        try:
            replica = self._instantiated()
        except (RuntimeError, MemoryError):  # the call can do without
            self._most = len(self._all)
            return None
        replica.stale = True
        self._all.append(replica)
        return replica

    def _instantiated(self) -> Replica:
        definition, executable = self._definition, self._definition.instantiate()
        updates = self._words.updates(partial(definition.updater, executable))
        start = definition.driver.launcher(executable)
        return Replica(executable, start, updates, self._first)

    def _write(self, replica: Replica, addresses: list[int]) -> None:
        """Update the nodes that have other addresses, or other values than those written last."""
        before, replica.bound = replica.bound, self._unbound
        updates: Collection[Update] = ()
        if addresses != before:
            updates = replica.updates.write(before, addresses)
        if replica.stale:
            updates = *updates, *replica.updates.load
        try:
            for update in updates:
                update()
        except DeviceLostError:
            raise
        except RuntimeError as reason:
            kernel = replica.updates.kernel(update)
            raise self._definition.update_error(kernel, reason) from reason
        replica.bound, replica.stale = addresses, False
        self.updated += len(updates)

    def close(self) -> None:
        """Free the executables, of which no launch is in flight."""
        replicas, self._all = self._all, []
        none = AddressWords((), {}, (), None).updates(_refused)
        self.current = Replica(None, _refuse, none, _CLOSED)
        for replica in replicas:
            self._definition.driver.close(replica.executable)
