"""How processes find the first one, which listens."""

from __future__ import annotations

import os
import socket
import time
from multiprocessing.connection import Connection

from tracegraph.distributed.channel import Channel
from tracegraph.distributed.hub import MAGIC, Hub, gather_processes
from tracegraph.distributed.launchers import Broadcast, ProcessPlace
from tracegraph.distributed.messages import connection_of, pack, unpack
from tracegraph.errors import ProcessGroupError

_LOOPBACK = ("127.0.0.1", "localhost")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
"""Seconds between attempts to reach the first process."""

Address = tuple[str, int]


def joined(place: ProcessPlace, broadcast: Broadcast | None, seconds: float) -> Channel:
    """The channel of a process, once all are there.

    Raises:
        ProcessGroupError: no address is known, it cannot be listened at or is not reached, or some
            processes do not come.
    """
    deadline = time.monotonic() + seconds
    if broadcast is None or place.address is not None:
        address = _required(place)
        if place.index == 0:
            return _first(place, _listening(address), deadline)
        return _other(place, address, deadline)
    if place.index == 0:
        server = socket.create_server(("", 0))
        broadcast((socket.gethostname(), _own_address(), server.getsockname()[1]))
        return _first(place, server, deadline)
    name, host, port = broadcast(None)
    near = name == socket.gethostname()
    return _other(place, (_LOOPBACK[0] if near else host, port), deadline)


def _required(place: ProcessPlace) -> Address:
    if place.address is None:
        raise ProcessGroupError(
            f"{place.launcher} does not say where process 0 is, as there are several machines: "
            "set MASTER_ADDR to the name of its machine, give coordinator_address='host:port', or "
            "import mpi4py before"
        )
    return place.address


def _own_address() -> str:
    """The address by which this machine is reached from others, if it has any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only chooses the interface
            own: str = probe.getsockname()[0]
        except OSError:
            return _LOOPBACK[0]
        return own


def _machine() -> str:
    """The machine, as NCCL tells machines apart."""
    return os.environ.get("NCCL_HOSTID") or socket.gethostname()


def _listening(address: Address) -> socket.socket:
    host, port = address
    try:
        return socket.create_server((host if host in _LOOPBACK else "", port), backlog=1024)
    except OSError as error:
        raise ProcessGroupError(
            f"process 0 cannot listen at {host}:{port} ({error.strerror}): give another "
            "coordinator_address, or another MASTER_PORT"
        ) from error


def _first(place: ProcessPlace, server: socket.socket, deadline: float) -> Channel:
    """Wait for the others; then tell all that they are there."""
    count = place.count
    with server:
        found = gather_processes(server, count, deadline)
    here, there = socket.socketpair()
    hosts = [_machine(), *(found[i][1]["host"] for i in range(1, count))]
    connections = {0: connection_of(there), **{i: each for i, (each, _) in found.items()}}
    for i in range(1, count):
        connections[i].send_bytes(pack({"hosts": hosts}))
    return Channel(connection_of(here), 0, count, hosts, Hub(connections))


def _other(place: ProcessPlace, address: Address, deadline: float) -> Channel:
    """Say who this is, and wait until all are there."""
    index, count = place.index, place.count
    connection = _reached(place, address, deadline)
    try:
        own = {"magic": MAGIC, "index": index, "count": count, "host": _machine()}
        connection.send_bytes(pack(own))
        if not connection.poll(max(deadline - time.monotonic(), 0)):
            raise ProcessGroupError(
                f"process {index} has reached process 0, but not all of {count} processes have come"
            )
        header, _ = unpack(connection.recv_bytes())
    except (OSError, EOFError, ValueError):
        raise ProcessGroupError(
            f"process 0 at {address[0]}:{address[1]} has ended, or is not one of this job"
        ) from None
    if "refused" in header:
        raise ProcessGroupError(header["refused"])
    return Channel(connection, index, count, header["hosts"], None)


def _reached(place: ProcessPlace, address: Address, deadline: float) -> Connection:
    pause = _FIRST_PAUSE
    while True:
        try:
            return connection_of(socket.create_connection(address, timeout=5))
        except OSError as error:
            if time.monotonic() + pause >= deadline:
                raise ProcessGroupError(
                    f"process {place.index} does not reach process 0 at "
                    f"{address[0]}:{address[1]} ({error}); is it started, and is this its address?"
                ) from error
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
