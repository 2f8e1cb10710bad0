"""The check that all processes of a mesh build the same program, where they would wait for ever.

Each sends a hash of its Plan, with the values of constants. How many it has built before may
differ, if some builds have failed in one process alone; it is told, as it shows who is ahead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lowering.plan.plan import Plan
from tracegraph.errors import MeshMismatchError
from tracegraph.version import __version__

if TYPE_CHECKING:
    from tracegraph.distributed.channel import Channel

_SHOWN = 200
"""Characters of a line of a Plan in a message."""


def require_same_program(channel: Channel, plan: Plan, number: int) -> str:
    """Compare a Plan, build `number` of this process, with those of all others; what it is called.

    Raises:
        MeshMismatchError: they differ; it says where first.
        PeerLostError, DeadlockError: as `Channel.exchange`.
    """
    text = str(plan)
    digest = _hash(plan, text)
    own = {"name": plan.name, "build": number, "hash": digest}
    doing = f"the build of {plan.name!r}"
    all_ = _exchanged(channel, own, doing)
    others = [i for i, each in enumerate(all_) if each["hash"] != all_[0]["hash"]]
    if others:
        texts = _exchanged(channel, {"text": text}, doing)
        lines = [each["text"].splitlines() for each in texts]
        told = [(i, all_[i]) for i in (0, *others)]
        rows = [f"process {i}: {each['name']!r}, build {each['build']}" for i, each in told]
        raise MeshMismatchError(
            "processes have built different programs, which would wait for one another for ever:",
            others,
            *rows,
            *_difference(others[0], lines[0], lines[others[0]]),
            "call the same functions in the same order in all processes, with arguments of the "
            "same types, and of the whole shape",
        )
    return f"{plan.name!r} ({digest[:8]})"


def _exchanged(channel: Channel, own: dict[str, Any], doing: str) -> list[dict[str, Any]]:
    found = channel.exchange(json.dumps(own).encode(), "a build", doing)
    return [json.loads(each) for each in found]


def _hash(plan: Plan, text: str) -> str:
    """All that decides what a Plan computes."""
    found = hashlib.sha256(f"{__version__}\n{text}".encode())
    for _, array in plan.constants:
        found.update(array.tobytes())
    return found.hexdigest()


def _difference(process: int, first: Sequence[str], other: Sequence[str]) -> list[str]:
    """The first line of the Plans that differs."""
    for number, pair in enumerate(zip_longest(first, other, fillvalue="nothing more"), 1):
        if pair[0] != pair[1]:
            shown = [line.strip()[:_SHOWN] for line in pair]
            return [
                f"line {number} of the plan:",
                f"  process 0: {shown[0]}",
                f"  process {process}: {shown[1]}",
            ]
    return ["the plans are the same text, but constants have other values"]
