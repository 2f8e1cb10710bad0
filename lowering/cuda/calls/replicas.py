"""Replicas: several executables of one graph, for addresses that come back.

In ``x = f(x)`` calls alternate between two pieces of memory, and also where each result is dropped
one call later. With an executable for each set of addresses, a call only chooses one.

A replica is added when updates to addresses seen before have taken the time of instantiating it: so
it never costs more than it could have saved by then. A graph with conditional nodes has none, for
CUDA allows it one executable at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from lowering.cuda.calls.address_updates import AddressWords, ExecUpdates, KernelHandle, Update
from lowering.cuda.graph.definition import Definition
from lowering.cuda.graph.small_inputs import Values
from lowering.errors import ClosedGraphError
from tracegraph.errors import ClosedError, DeviceLostError
from tracegraph.generated.dataclass import dataclass
from tracegraph.staging.calls.clock import clock

MOST = 4
"""With two results assigned to the names of two arguments, addresses come back after four calls."""

UPDATES_PER_NODE = 5
"""Updates in the time of instantiating a node: 0.6 and 3 µs, measured on the host of an H200."""

_CLOSED = [-1]
"""Equal to no addresses: a call of a closed graph gets to an update, which raises."""


def _refuse() -> None:
    raise ClosedGraphError


def _refused(kernel: KernelHandle) -> Update:
    return _refuse


@dataclass(slots=True, eq=False)
class Replica:
    """An executable, and the addresses that its nodes hold.

    `start` launches it. A `stale` one lacks values that the last call wrote.
    """

    executable: Any
    start: Callable[[], None]
    updates: ExecUpdates
    bound: list[int]
    stale: bool = False


class Replicas:
    """The executables of a definition; calls use the `current` one.

    Callers hold the lock of the graph. After an interrupt at any point, the next call repairs the
    state: a replica has no addresses while it is written, and `values` are stale until the end.
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

        There are at most `most`; none is made while `waits()`, for instantiating would wait for
        loops in flight.
        """
        self._definition, self._words = definition, words
        self._first, self._unbound = addresses, [-1] * len(addresses)
        self._most, self._waits = most, waits
        self.values = values
        self.updated = 0
        """Updates of nodes, in all replicas together."""
        self.last_update = 0.0, 0
        """The time of the last call of `update`, and how many nodes had been updated before."""
        self._left: deque[list[int]] = deque(maxlen=MOST)
        self._spent = 0  # updates to addresses among those that replicas left
        self._turn = 0
        self.current = self._instantiated()
        self._all = [self.current]

    def __len__(self) -> int:
        return len(self._all)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._all

    def update(self, addresses: list[int]) -> Replica:
        """Make current the replica that has these addresses, and give it the values written last.

        Raises:
            ClosedError: they were closed.
            UpdateError: the driver refused. The replica is written as a whole by the next call.
        """
        self.last_update = clock(), self.updated
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
        """A replica that is given addresses which none has: a new one, or the next round robin."""
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
        """Another replica, if updates have taken as long as making it."""
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
        """Free the executables; no launch of them may be in flight."""
        replicas, self._all = self._all, []
        self._words = AddressWords((), {}, (), None)
        self.current = Replica(None, _refuse, self._words.updates(_refused), _CLOSED)
        for replica in replicas:
            self._definition.driver.close(replica.executable)
