"""LaunchedTogether: launches of one program on several devices, which wait for one another.

What stops one of them stops all. While a launch is waited for, its peers are watched: if one of
them is lost, the others would wait for ever, and are abandoned.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tracegraph.distributed.timeouts import SETTING, peer_timeout
from tracegraph.errors import PeerLostError, StoppedError

ANSWER_SECONDS = 1.0
"""How long the answers of other processes are waited for."""

WATCH_SECONDS = 0.1
"""How often peers are looked at."""

COMPARE_SECONDS = 2.0
"""How old a launch is that is still waited for when processes first compare what they do. They do
so again whenever it is twice as old."""

STOP_SECONDS = 10.0
"""How long devices may take to agree about a stop, or to end a step, before they are abandoned."""


class Peers(Protocol):
    """The devices of a mesh, as far as their ends are concerned."""

    def watch(self, number: int | None) -> None:
        """Raise PeerLostError if a device will never come to the launch of a number."""

    def abandon(self, reason: BaseException) -> None:
        """End all that is in flight on them, whatever it waits for."""

    def compare(self) -> None:
        """Let other processes see what this one has launched."""

    def behind(self, number: int) -> Sequence[int]:
        """The processes that had not launched this number when they were last compared."""

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

    `failed` says that one of them has failed: the others, in theirs, may wait for it.
    """

    __slots__ = (
        *("_compare", "_looked", "_start", "_stopped", "_uneven_since"),
        *("failed", "launches", "number", "peers"),
    )

    def __init__(self, peers: Peers, number: int | None = None) -> None:
        self.peers, self.number = peers, number
        self.launches: list[tuple[Any, Launch]] = []
        self._stopped: str | None = None
        self.failed = False
        self._looked = self._start = time.monotonic()
        self._compare = None if number is None else COMPARE_SECONDS
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

    def watch_within(self) -> None:
        """Look at the peers, now and then, in the midst of a launch that the host drives.

        Raises:
            PeerLostError: one of them is lost, or was not launched.
            MeshMismatchError: another process has launched something else.
            StoppedError: another process has stopped it.
        """
        if self.failed:
            raise PeerLostError("another device of the mesh was not launched")
        if self._look() and self.told is not None:
            raise StoppedError(self.told)

    def _look(self) -> bool:
        """Look at the peers if it is time for that; whether it is."""
        now = time.monotonic()
        if now - self._looked < WATCH_SECONDS:
            return False
        self._looked = now
        self.peers.watch(self.number)
        if self._compare is not None and self.number is not None:
            self._compare_after(now - self._start, self._compare, self.number)
        return True

    def _compare_after(self, waited: float, comparing: float, number: int) -> None:
        """Compare with other processes now and then, and when these come too late."""
        longest = peer_timeout()
        if waited > comparing:
            self._compare = 2 * waited if waited > longest else min(2 * waited, longest)
            self.peers.compare()
        elif waited > longest + ANSWER_SECONDS:
            behind = self.peers.behind(number)
            if behind:
                raise PeerLostError(
                    f"process {behind[0]} has not launched what this one has for "
                    f"{longest:g} s, {SETTING}"
                )

    def watch(self) -> None:
        """Look at the peers, now and then.

        Raises:
            PeerLostError: one of them is lost, or did not end within the time for that.
            MeshMismatchError: another process has launched something else.
        """
        if not self._look():
            return
        self.obey()
        now = self._looked
        ended = [launch.passed() for _, launch in self.launches]
        if all(ended) or not any(ended):
            self._uneven_since = None
        elif self._uneven_since is None:
            self._uneven_since = now
        elif now - self._uneven_since > peer_timeout():
            running = ", ".join(str(i) for i, is_over in enumerate(ended) if not is_over)
            raise PeerLostError(
                f"of the devices that this process has launched, {running} had not ended "
                f"{peer_timeout():g} s after another one, {SETTING}"
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
