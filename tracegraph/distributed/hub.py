"""The hub: a thread of the first process, which all processes are connected to.

It waits for messages, and answers them by what `Meetings` says. A process whose connection breaks
without a farewell is lost; the system closes the connections of a killed process at once.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from tracegraph.distributed.meetings import Arrived, Meetings, Sent
from tracegraph.distributed.messages import Header, connection_of, pack, unpack
from tracegraph.errors import ProcessGroupError

MAGIC = "tracegraph processes 1"

_PATIENCE = 5.0
"""Seconds for the first words of who connects."""


class Hub:
    """Serves the processes of these connections, until all have ended."""

    def __init__(self, connections: Mapping[int, Connection]) -> None:
        self._connections = dict(connections)
        self._meetings = Meetings(len(connections))
        self._thread = threading.Thread(target=self._serve, name="tracegraph hub", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until all processes have ended."""
        self._thread.join()

    def drop(self) -> None:
        """In a process that was forked from the first one: close the copies of connections."""
        for connection in self._connections.values():
            connection.close()

    def _serve(self) -> None:
        while self._connections:
            numbers = {id(each): process for process, each in self._connections.items()}
            for ready in wait(list(self._connections.values())):
                process = numbers[id(ready)]
                try:
                    header, pieces = unpack(self._connections[process].recv_bytes())
                except (OSError, EOFError):
                    self._ended(process, None)
                    continue
                except KeyError:  # it was lost while another message was answered
                    continue
                if "bye" in header:
                    self._ended(process, header["bye"])
                else:
                    self._send(self._answers(process, header, pieces))

    def _answers(self, process: int, header: Header, pieces: list[bytes]) -> Iterable[Sent]:
        if "failed" in header:
            return self._meetings.fail(process, header["failed"], header["device"])
        if "stop" in header:
            return self._meetings.stop(process, header["of"], header["stop"], header["name"])
        if "noted" in header:
            return self._meetings.note(process, tuple(header["noted"]))
        if not header.keys().isdisjoint(("compare", "differs", "launched")):
            return self._meetings.pass_on(process, header)
        if "asks" in header:
            return self._meetings.ask(process, header["asks"])
        if "withdrawn" in header:
            return self._meetings.withdraw(process, header["withdrawn"])
        header["group"], header["owners"] = tuple(header["group"]), tuple(header["owners"])
        return self._meetings.arrive(Arrived(process, data=pieces[0], **header))

    def _ended(self, process: int, launches: int | None) -> None:
        """A process has taken leave after so many launches, or is lost."""
        connection = self._connections.pop(process, None)
        if connection is not None:
            connection.close()
        self._send(self._meetings.end(process, launches))

    def _send(self, messages: Iterable[Sent]) -> None:
        broken = []
        for process, header, pieces in messages:
            try:
                if process in self._connections:
                    self._connections[process].send_bytes(pack(header, pieces))
            except OSError:
                broken.append(process)
        for process in broken:
            self._ended(process, None)


def gather_processes(server: socket.socket, count: int, deadline: float) -> dict[int, Any]:
    """Connections of all processes but the first, and of each the header that it began with.

    What connects and does not speak as a process of this job is turned away.

    Raises:
        ProcessGroupError: some are missing when the time is up, two have one number, or another
            number of processes.
    """
    found: dict[int, Any] = {}
    while len(found) < count - 1:
        server.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            connected, _ = server.accept()
        except TimeoutError:
            missing = ", ".join(str(i) for i in range(1, count) if i not in found)
            raise ProcessGroupError(
                f"of {count} processes, these have not come: {missing}; start all of them, with "
                "the same address of the first, or give initialization_timeout= more seconds"
            ) from None
        connection = connection_of(connected)
        header = _greeting(connection)
        if header is None:
            connection.close()
            continue
        index = header["index"]
        problem = _problem(header, count, index in found)
        if problem:
            connection.send_bytes(pack({"refused": problem}))
            connection.close()
            raise ProcessGroupError(problem)
        found[index] = connection, header
    return found


def _greeting(connection: Connection) -> Header | None:
    """The first message, if it is that of a process."""
    try:
        if not connection.poll(_PATIENCE):
            return None
        header, _ = unpack(connection.recv_bytes(1 << 16))
    except (OSError, EOFError, ValueError):
        return None
    return header if header.get("magic") == MAGIC else None


def _problem(header: Header, count: int, taken: bool) -> str:
    index = header["index"]
    if header["count"] != count:
        return (
            f"process {index} was started as one of {header['count']} processes, the first one as "
            f"one of {count}"
        )
    if taken or not 0 < index < count:
        return f"two processes say that they are process {index}; each has a number of its own"
    return ""
