"""LaunchedTogether: launches of one program on several devices, which wait for one another.

What stops one of them stops all. While a launch is waited for, its peers are watched: if one of
them is lost, the others would wait for ever, and are abandoned.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

from tracegraph.errors import PeerLostError

WATCH_SECONDS = 0.1
"""How often peers are looked at."""

STOP_SECONDS = 10.0
"""How long devices may take to agree about a stop, or to end a step, before they are abandoned."""

PEER_TIMEOUT = 600.0
"""How long a device may run after another one has ended before it counts as waiting for ever."""


class Peers(Protocol):
    """The devices of a mesh, as far as their ends are concerned."""

    def watch(self) -> None:
        """Raise PeerLostError if a device will never come."""

    def abandon(self, reason: BaseException) -> None:
        """End all that is in flight on them, whatever it waits for."""


class Launch(Protocol):
    """The launch on one device."""

    together: LaunchedTogether | None

    def passed(self) -> bool:
        """Whether it has ended on the device."""


class LaunchedTogether:
    """The launches of one call, with the timelines that they are on.

    `stopped` names the exception that stopped them, if one did.
    """

    __slots__ = ("_looked", "_uneven_since", "launches", "peers", "stopped")

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.launches: list[tuple[Any, Launch]] = []
        self.stopped: str | None = None
        self._looked = time.monotonic()
        self._uneven_since: float | None = None

    def watch(self) -> None:
        """Look at the peers, now and then.

        Raises:
            PeerLostError: one of them is lost, or did not end within the time for that.
        """
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return
        self._looked = now
        self.peers.watch()
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
        if launch.together is not None:
            launch.together.watch()


def abandon(launches: Iterable[Launch], reason: BaseException) -> bool:
    """Abandon the peers of launches; whether there are any."""
    found = dict.fromkeys(l.together.peers for l in launches if l.together is not None)
    for peers in found:
        peers.abandon(reason)
    return bool(found)
