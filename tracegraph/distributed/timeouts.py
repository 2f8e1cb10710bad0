"""How long devices and processes wait for one another."""

from __future__ import annotations

import math
import os
from numbers import Real

__all__ = ["peer_timeout", "set_peer_timeout"]

_VARIABLE = "TRACEGRAPH_PEER_TIMEOUT"

SETTING = (
    "the longest that a peer is waited for; tracegraph.distributed.set_peer_timeout(seconds) or "
    "TRACEGRAPH_PEER_TIMEOUT in the environment sets another time"
)
"""What errors say of it."""

_SECONDS = 600.0
"""Without a setting."""

_chosen: float | None = None


def set_peer_timeout(seconds: float | None) -> None:
    """How long a device or a process of a mesh waits for another one before that counts as lost.

    It holds for all that waits from then on: a GPU that has ended a program which another one has
    not ended, processes that wait for one that does not come to a build or to a collective of the
    host, and NCCL while it connects. Without a call, the environment variable
    TRACEGRAPH_PEER_TIMEOUT has the number of seconds, else it is 600. Let it be longer than what
    devices may compute between two collectives, and than processes may differ in what they do
    beside: what is late by more raises `PeerLostError` where it is waited for.

    Args:
        seconds: a positive number, or infinity; None for that without a call.

    Raises:
        TypeError: `seconds` is not a number.
        ValueError: it is not positive.

    >>> set_peer_timeout(30)
    >>> peer_timeout()
    30.0
    >>> set_peer_timeout(None)
    """
    global _chosen  # noqa: PLW0603 - the time is the process's
    _chosen = None if seconds is None else _checked(seconds)


def _checked(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        kind = type(seconds).__qualname__
        raise TypeError(
            f"set_peer_timeout takes a number of seconds, or None, not an instance of {kind}"
        )
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"set_peer_timeout takes more than 0 seconds, got {seconds}")
    return float(seconds)


def peer_timeout() -> float:
    """The seconds after which a peer that does not come counts as lost.

    Raises:
        ValueError: TRACEGRAPH_PEER_TIMEOUT counts and is not a positive number.

    >>> peer_timeout()
    600.0
    """
    if _chosen is not None:
        return _chosen
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return _SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(
            f"{_VARIABLE} is {text!r}; set it to a number of seconds, such as 60, or unset it"
        )
    return seconds
