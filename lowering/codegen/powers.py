"""Powers whose exponent is known, in fewer instructions than any power."""

from __future__ import annotations

from tracegraph.ir.scalar import Const
from tracegraph.ir.scalar_values import Apply

_FUNCTIONS = {
    3.0: "tg_power_3",
    4.0: "tg_power_4",
    1.5: "tg_power_3_2",
    -0.5: "tg_power_minus_1_2",
    -1.5: "tg_power_minus_3_2",
    -2.0: "tg_power_minus_2",
}


def power_function(expr: Apply) -> str | None:
    """The function of `powers.cuh` for a power of a real number, if there is one."""
    if expr.op.name not in ("power", "float_power") or expr.args[0].dtype.kind in "biuc":
        return None
    exponent = expr.args[1]
    return _FUNCTIONS.get(exponent.value.real) if type(exponent) is Const else None
