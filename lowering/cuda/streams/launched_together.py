"""LaunchedTogether: launches of one program on several devices, which wait for one another.

What stops one of them stops all. While a launch is waited for, its peers are watched: if one of
them is lost, the others would wait for ever, and are abandoned.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tracegraph.errors import PeerLostError, StoppedError

WATCH_SECONDS = 0.1
"""How often peers are looked at."""

COMPARE_SECONDS = 2.0
"""How old a launch is that is still waited for when processes compare what they have launched."""

STOP_SECONDS = 10.0
"""How long devices may take to agree about a stop, or to end a step, before they are abandoned."""

PEER_TIMEOUT = 600.0
"""How long a device may run after another one has ended before it counts as waiting for ever."""


class Peers(Protocol):
    """The devices of a mesh, as far as their ends are concerned."""

    def watch(self, number: int | None) -> None:
        """Raise PeerLostError if a device will never come to the launch of a number."""

    def abandon(self, reason: BaseException) -> None:
        """End all that is in flight on them, whatever it waits for."""

    def compare(self) -> None:
        """Let other processes see what this one has launched."""

    def tell(self, numbers: Sequence[int], name: str) -> None:
        """Let all other processes know, before it is done, that an exception of this name stops the
        launches of these numbers.
        """

    def told(self, number: int) -> str | None:
        """The name of the exception that has stopped a launch in another process, if one has."""


class Launch(Protocol):
    """The launch on one device."""

    together: LaunchedTogether | None

    def passed(self) -> bool:
        """Whether it has ended on the device."""


class LaunchedTogether:
    """The launches of one call, with their timelines. It has the same `number` in all
    processes of its mesh, if that is a mesh of several.
    """

    __slots__ = ("_compare", "_looked", "_stopped", "_uneven_since", "launches", "number", "peers")

    def __init__(self, peers: Peers, number: int | None = None) -> None:
        self.peers, self.number = peers, number
        self.launches: list[tuple[Any, Launch]] = []
        self._stopped: str | None = None
        self._looked = time.monotonic()
        self._compare = None if number is None else self._looked + COMPARE_SECONDS
        self._uneven_since: float | None = None

    @property
    def stopped(self) -> str | None:
        """The name of the exception that stopped them, if one did, in this process or another."""
        return self._stopped or self.told

    @property
    def told(self) -> str | None:
        """The name of the exception that stopped them in another process, if one did."""
        return None if self.number is None else self.peers.told(self.number)

    def stop(self, name: str) -> None:
        """Note that an exception stops them in this process."""
        self._stopped = self.told or name

    def obey(self) -> None:
        """End them if another process has stopped them: loops may not agree on that by themselves,
        and devices that wait for those of that process wait in vain.
        """
        told = None if self._stopped else self.told
        if told is not None:
            self._stopped = told
            if not all(launch.passed() for _, launch in self.launches):
                timeline, _ = self.launches[0]
                timeline.stop(StoppedError(told))

    def watch(self) -> None:
        """Look at the peers, now and then.

        Raises:
            PeerLostError: one of them is lost, or did not end within the time for that.
            MeshMismatchError: another process has launched something else.
        """
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return
        self._looked = now
        self.peers.watch(self.number)
        self.obey()
        if self._compare is not None and now > self._compare:
            self._compare = None
            self.peers.compare()
        ended = [launch.passed() for _, launch in self.launches]
        if all(ended) or not any(ended):
            self._uneven_since = None
        elif self._uneven_since is None:
            self._uneven_since = now
        elif now - self._uneven_since > PEER_TIMEOUT:
            raise PeerLostError(
                f"a device had not ended {PEER_TIMEOUT:g} s after another one of its mesh"
            )


def watch(launches: Iterable[Launch]) -> None:
    """Look at the peers of launches that have some; as `LaunchedTogether.watch`."""
    for launch in launches:
        together = launch.together
        if together is not None:
            together.watch()


def tell(launches: Iterable[Launch], reason: BaseException) -> None:
    """Let other processes know which launches will be stopped, unless they have said so."""
    numbers: dict[Peers, list[int]] = {}
    for together in dict.fromkeys(launch.together for launch in launches):
        if together is not None and together.number is not None and together.told is None:
            numbers.setdefault(together.peers, []).append(together.number)
    for peers, own in numbers.items():
        peers.tell(own, type(reason).__name__)


def abandon(launches: Iterable[Launch], reason: BaseException) -> bool:
    """Abandon the peers of launches; whether there are any."""
    several = [together for launch in launches if (together := launch.together) is not None]
    found = dict.fromkeys(together.peers for together in several)
    for peers in found:
        peers.abandon(reason)
    return bool(found)
