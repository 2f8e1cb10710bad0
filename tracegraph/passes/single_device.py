"""Collectives of a device that is alone along their axes: its own values."""

from __future__ import annotations

from tracegraph.ir.program import Eqn, Literal, application
from tracegraph.passes.rewrite import Defs, Replacement, Rule


def _alone(eqn: Eqn, defs: Defs) -> Replacement | None:
    """The operand, under the shape of the result; or the number 0 of the device."""
    if eqn.attrs["count"] != 1:
        return None
    (output,) = eqn.outputs
    if not eqn.operands:
        return Replacement((Literal.of(0, output.type),))
    (x,) = eqn.operands
    if x.type == output.type:
        return Replacement((x,))
    if x.type.shape == output.type.shape:
        made = application("cast", (x,), {"dtype": output.type.dtype}, eqn.source)
    else:
        made = application("reshape", (x,), {"shape": output.type.shape}, eqn.source)
    return Replacement(made.outputs, (made,))


single_device_rules: dict[str, Rule] = dict.fromkeys(
    (
        *("all_gather", "all_to_all", "axis_index", "pmax", "pmin", "ppermute", "psum"),
        "psum_scatter",
    ),
    _alone,
)
"""By name of an op: its simplification."""
