"""Upgrades: equations of older versions of ops as equations of today.

An op has a version, which its record says. A file lists the ops that it uses with theirs. An op may
get further attributes with defaults; where its meaning changes, or an attribute goes, its version
rises, and an upgrade from the version before is registered here, for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracegraph.errors import ExportVersionError, MalformedProgramError
from tracegraph.ir.op import find

Equation = dict[str, Any]

Upgrade = Callable[[Equation], Equation]
"""Gives the equation, as JSON, in the next version. Operands, results and regions are numbers that
the equations around it know: it keeps them, and changes the op's name or attributes.
"""

UPGRADES: dict[tuple[str, int], Upgrade] = {}
"""By the name of an op and the version that an upgrade starts from."""


def upgrades_for(versions: Any) -> Mapping[str, tuple[Upgrade, ...]]:
    """For each op of a file, by name, the upgrades that its equations need, in order.

    Raises:
        ExportVersionError: the file has an op that is newer than this package, unknown to it, or
            older without an upgrade.
        MalformedProgramError: these are no versions of ops.
    """
    if not isinstance(versions, dict):
        raise MalformedProgramError("its ops have no versions")
    return {name: _path(name, version) for name, version in versions.items()}


def _path(name: str, version: Any) -> tuple[Upgrade, ...]:
    if type(version) is not int or version < 1:
        raise MalformedProgramError(f"{version!r} is no version of the op {name!r}")
    path = []
    at, latest = version, _latest(name)
    while at != latest:
        upgrade = UPGRADES.get((name, at))
        if upgrade is None:
            has = f"version {latest}" if latest else "none of this name"
            needed = f"the op {name!r}, version {version}"
            raise ExportVersionError(needed, has, is_older=version < latest)
        path.append(upgrade)
        at += 1
        if at > latest > 0:
            break
        if not latest and (name, at) not in UPGRADES:
            break  # the last upgrade gives it another name
    return tuple(path)


def _latest(name: str) -> int:
    op = find(name)
    return 0 if op is None else op.version
