"""Channel: what a process says to the others through the first one, and waits for.

All that is sent here is small, or slow by intent: hashes of programs, names of communicators, and
the arrays that devices of a mesh of the host exchange.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from itertools import count
from multiprocessing.connection import Connection

from tracegraph.distributed.hub import Hub
from tracegraph.distributed.messages import Header, pack, unpack
from tracegraph.distributed.tickets import Failure, Ticket
from tracegraph.errors import (
    DeadlockError,
    MeshMismatchError,
    PeerFailedError,
    PeerLostError,
    ProcessGroupError,
)

COMPARED = 256
"""How many launches processes compare."""

_DIFFERENT = "processes run different programs, which wait for one another for ever:"

_SAME_ORDER = "call the same sharded functions in the same order in all processes"


def _lost(process: int, how: str) -> Failure:
    return lambda doing: PeerLostError(
        f"process {process} {how}, and this one was in {doing}", process
    )


class Channel:
    """The channel of process `index` of `size`. `hosts` names the machine of each process.

    `lost` is None, or makes the error for a process that is lost, or runs something else; after
    that, all waits raise it.
    `stopped` has the launches that an exception has stopped in another process, and its name,
    `ended` how many launches those have made that have taken leave: these are over. `launched` is
    how many launches others had made when they last said so.
    """

    def __init__(
        self, connection: Connection, index: int, size: int, hosts: Sequence[str], hub: Hub | None
    ) -> None:
        self.index, self.size, self.hosts = index, size, tuple(hosts)
        self.lost: Failure | None = None
        self.stopped: dict[int, str] = {}
        self.ended: dict[int, int] = {}
        self.launched: dict[int, int] = {}
        self._connection, self._hub = connection, hub
        self._numbers, self._launches = count(), 0
        self._tickets: dict[int, Ticket] = {}
        self._failed: dict[int, int] = {}
        self._made: deque[tuple[int, str]] = deque(maxlen=COMPARED)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._closed = False
        self._reader = threading.Thread(target=self._read, name="tracegraph peers", daemon=True)
        self._reader.start()

    def new_launch(self, program: str = "") -> int:
        """The number of a launch, which is the same in all processes that make the same ones.

        `program` is the same in all processes that launch the same program.
        """
        with self._lock:
            number = self._launches
            self._launches += 1
            self._made.append((number, program))
            return number

    def compare(self) -> None:
        """Let the others see what this process has launched, the last of which it waits for; they
        answer how many they have launched. If one of them has launched something else, or waits for
        all to do something together before it comes to that, all waits of all processes raise
        MeshMismatchError from then on.
        """
        with self._lock:
            made = list(self._made)
        self._send({"compare": made})

    def behind(self, number: int) -> list[int]:
        """The processes that had not made launch `number` when they last said how many they had."""
        others = [process for process in range(self.size) if process != self.index]
        return [process for process in others if self.launched.get(process, 0) <= number]

    def exchange(
        self, data: bytes, meeting: str, text: str, launch: int | None = None
    ) -> Sequence[bytes]:
        """The bytes of all processes, in order, once all are in the same meeting.

        Raises:
            PeerLostError: a process is lost or has ended, or does not come in time.
            PeerFailedError: it has failed in the launch.
            DeadlockError: processes are in different meetings.
            ProcessGroupError: the channel is closed.
        """
        everyone = tuple(range(self.size))
        return self.meet("process", self.index, everyone, everyone, data, meeting, text, launch)

    def meet(
        self,
        kind: str,
        number: int,
        group: Sequence[int],
        owners: Sequence[int],
        data: bytes,
        meeting: str,
        text: str,
        launch: int | None = None,
        together: int = 1,
    ) -> Sequence[bytes]:
        """The bytes of all of a group, in order; as `Arrived` says it.

        Raises:
            PeerLostError, DeadlockError, ProcessGroupError: as `exchange`.
            PeerFailedError: a device has failed in the launch.
            TimeLimitError: the time of a `time_limit` was up.
        """
        ticket, name = Ticket(launch, text if kind == "process" else None), next(self._numbers)
        with self._lock:
            self._require(launch, text)
            self._tickets[name] = ticket
        header = {
            "ticket": name, "kind": kind, "number": number, "group": group, "owners": owners,
            "meeting": meeting, "text": text, "launch": launch, "together": together,
        }  # fmt: skip
        try:
            self._send(header, data)
            return ticket.wait(text, lambda: self._send({"asks": name}))
        except BaseException:
            self._send({"withdrawn": name})
            raise
        finally:
            with self._lock:
                self._tickets.pop(name, None)

    def fail(self, launch: int, device: int) -> None:
        """Tell the others, and those of this process that wait in the launch, that a device has
        failed.
        """
        with self._lock:
            if launch in self._failed or self._closed:
                return
            self._note_failure(launch, device)
        self._send({"failed": launch, "device": device})

    def _note_failure(self, launch: int, device: int) -> None:
        """End the waits in a launch. The caller holds the lock."""
        self._failed.setdefault(launch, device)
        for each in self._tickets.values():
            if each.launch == launch:
                each.fail(lambda text: PeerFailedError(device, text))

    def stop(self, launches: Sequence[int], name: str) -> None:
        """Let all others know that an exception of this name stops launches. When this returns,
        they have noted it, so that none takes what they compute from then on for a result.
        """
        ticket, number = Ticket(), next(self._numbers)
        with self._lock:
            if self._closed or self.lost is not None:
                return
            self._tickets[number] = ticket
        self._send({"stop": list(launches), "name": name, "of": number})
        ticket.wait_for_any()
        with self._lock:
            self._tickets.pop(number, None)

    def check(self, launch: int | None, doing: str) -> None:
        """Called now and then by what runs.

        Raises:
            PeerLostError: a process is lost, or has ended before the launch.
            MeshMismatchError: processes have launched different programs.
            PeerFailedError: another device has failed in the launch.
        """
        if self.lost is not None or launch in self._failed:
            with self._lock:
                self._require(launch, doing)
        for process, launches in list(self.ended.items()):
            if launch is not None and launch >= launches:
                raise _lost(process, "has ended")(doing)

    def close(self) -> None:
        """Take leave. In the first process, wait until all others have done so."""
        with self._lock:
            closed, self._closed = self._closed, True
        if closed:
            return
        self._send({"bye": self._launches})
        if self._hub is not None:
            self._hub.join()
        self._connection.close()

    def drop(self) -> None:
        """In a process that was forked from this one: it is none of the others, and says nothing.

        Its copies of connections must not keep them open when this process is killed.
        """
        self._lock = threading.Lock()  # a thread that this process lacks may hold that one
        self._closed = True
        self._connection.close()
        if self._hub is not None:
            self._hub.drop()

    def _require(self, launch: int | None, doing: str) -> None:
        """Raise if no wait of a launch can succeed. The caller holds the lock."""
        if self.lost is not None:
            raise self.lost(doing)
        if self._closed:
            raise ProcessGroupError(
                f"{doing} needs the other processes, but tracegraph.distributed.shutdown() was "
                "called"
            )
        if launch is not None and launch in self._failed:
            raise PeerFailedError(self._failed[launch], doing)

    def _send(self, header: Header, *pieces: bytes) -> None:
        message = pack(header, pieces)
        try:
            with self._sending:
                self._connection.send_bytes(message)
        except OSError:  # the reader finds out why
            pass

    def _read(self) -> None:
        """Take in answers, in a thread of its own."""
        try:
            while True:
                self._take(*unpack(self._connection.recv_bytes()))
        except (OSError, EOFError, TypeError):  # TypeError: it was closed meanwhile
            if not self._closed:
                self._lose(0, "is lost")

    def _take(self, header: Header, pieces: Sequence[bytes]) -> None:
        if "lost" in header:
            self._lose(header["lost"], header["how"])
            return
        if "compare" in header:
            self._find_difference(header["of"], header["compare"])
            self._send({"launched": self._launches})
            return
        if "launched" in header:
            self.launched[header["of"]] = header["launched"]
            return
        if "differs" in header:
            self._fail_all(lambda _: MeshMismatchError(*header["differs"]))
            return
        if "ended" in header:
            self.ended[header["ended"]] = header["launches"]
            return
        if "stopped" in header:
            self.stopped.update(dict.fromkeys(header["stopped"], header["name"]))
            self._send({"noted": header["by"]})
            return
        with self._lock:
            if "failed" in header:
                self._note_failure(header["failed"], header["device"])
                return
            answered = next(header[key] for key in ("met", "patience", "of") if key in header)
            ticket = self._tickets.get(answered)
            if ticket is None:
                return
            if "patience" in header:
                ticket.rows = header["rows"]
            elif "met" in header:
                ticket.answer(pieces)
            elif "gone" in header:
                ticket.fail(_lost(header["gone"], header["how"]))
            else:
                self._launches = header["launches"]
                ticket.fail(lambda text: DeadlockError(header["deadlock"], header["rows"]))

    def _find_difference(self, process: int, made: Sequence[tuple[int, str]]) -> None:
        """Tell all if another process has launched something else than this one does."""
        with self._lock:
            own, launches = dict(self._made), self._launches
            waits = [each.doing for each in self._tickets.values() if each.doing and not each.over]
        for number, program in made:
            other = own.get(number)
            if other is None and number >= launches and waits:
                other = f"not made, as it waits for all in {waits[0]}"
            if other not in (None, program):
                rows = sorted([(process, program), (self.index, other)])
                told = [f"launch {number} of process {i}: {name}" for i, name in rows]
                self._send({"differs": (_DIFFERENT, [rows[1][0]], *told, _SAME_ORDER)})
                return

    def _lose(self, process: int, how: str) -> None:
        self._fail_all(_lost(process, how))

    def _fail_all(self, failure: Failure) -> None:
        with self._lock:
            if self.lost is None:
                self.lost = failure
            for each in self._tickets.values():
                each.fail(self.lost)
