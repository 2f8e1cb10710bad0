"""Messages between processes: a header, which is JSON, and pieces of bytes.

Nothing is unpickled: what arrives is data, whoever has sent it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

Header = dict[str, Any]

Bytes = bytes | memoryview

_LENGTH = 4
"""Bytes of the length of a header."""

_KEEPALIVE = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 5}
"""In seconds: a machine that is gone is noticed, too."""


def pack(header: Header, pieces: Sequence[Bytes] = ()) -> bytes:
    """A message as bytes.

    >>> unpack(pack({"say": "this"}, [b"a", b"", b"bc"]))
    ({'say': 'this'}, [b'a', b'', b'bc'])
    """
    sizes = [len(piece) for piece in pieces]
    text = json.dumps({**header, "sizes": sizes}).encode()
    return b"".join((len(text).to_bytes(_LENGTH, "big"), text, *pieces))


def unpack(message: bytes) -> tuple[Header, list[bytes]]:
    """The header and the pieces of a message.

    Raises:
        ValueError: it is none.
    """
    start = _LENGTH + int.from_bytes(message[:_LENGTH], "big")
    header = json.loads(message[_LENGTH:start])
    if not isinstance(header, dict) or not isinstance(header.get("sizes"), list):
        raise ValueError("not a message of a process")
    pieces = []
    for size in header.pop("sizes"):
        pieces.append(message[start : start + size])
        start += size
    return header, pieces


def connection_of(connected: socket.socket) -> Connection:
    """A connection that sends and receives whole messages on a socket, which it owns."""
    if connected.family in (socket.AF_INET, socket.AF_INET6):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, seconds in _KEEPALIVE.items():
            if hasattr(socket, name):  # not on all systems
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)
    connected.setblocking(True)
    return Connection(connected.detach())
