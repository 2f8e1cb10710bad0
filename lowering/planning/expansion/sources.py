"""Lines of the user for equations that planning makes."""

from __future__ import annotations

from tracegraph.ir.program import Region
from tracegraph.ir.record import replace
from tracegraph.user_source import Source


def at_line(region: Region, source: Source | None) -> Region:
    """The region as if the user's line had written it."""
    eqns = [
        replace(eqn, source=source, regions=tuple([at_line(r, source) for r in eqn.regions]))
        for eqn in region.eqns
    ]
    return replace(region, eqns=tuple(eqns))
