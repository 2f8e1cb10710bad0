"""The largest and smallest over devices, where the library that compares them drops NaN.

    pmax(x)   =   where(pmax(isnan(x)) > 0, NaN, pmax(x))

Both are carried out at once. What the second gives where there is a NaN is not used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.dtypes import is_half
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Value, application, walk
from tracegraph.ir.types import ArrayType, scalar_type
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite

_EXTREMES = frozenset({"pmax", "pmin"})
_FLAG = np.dtype(np.uint8)


def keep_nan_of_devices(program: Program) -> Program:
    """The program, in which an extreme element over devices is NaN if one of them has NaN there."""
    if not any(eqn.op.name in _EXTREMES for eqn in walk(program.body)):
        return program
    return rewrite(program, lambda: by_name(dict.fromkeys(_EXTREMES, _with_flags)))


def _with_flags(eqn: Eqn, _: Defs) -> Replacement | None:
    (x,) = eqn.operands
    dtype = x.type.dtype
    if dtype.kind != "f" and not is_half(dtype):
        return None
    eqns: list[Eqn] = []

    def emit(name: str, *operands: Atom, **attrs: Any) -> Value:
        eqns.append(application(name, operands, attrs, eqn.source))
        return eqns[-1].outputs[0]

    flags = emit("cast", emit("isnan", x), dtype=_FLAG)
    axes = {"axes": eqn.attrs["axes"], "count": eqn.attrs["count"]}
    any_flag = emit("pmax", flags, **axes)
    is_nan = emit("greater", any_flag, Literal.of(0, scalar_type(_FLAG)))
    extreme = emit(eqn.op.name, x, **eqn.attrs)
    nan = Literal.of(np.nan, ArrayType(dtype))
    return Replacement((emit("where", is_nan, nan, extreme),), tuple(eqns))
