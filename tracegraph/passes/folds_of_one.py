"""Folds over axes of one element: there is nothing to fold, and the result is a view.

Only what NumPy gives: it adds the elements of a sum to 0, so that the sum of -0.0 is 0.0.
"""

from __future__ import annotations

from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Literal, Value, application
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.passes.rewrite import Defs, Replacement, Rule


def _is_of_one(eqn: Eqn) -> bool:
    """Whether each element of the result is a fold of one element."""
    (x,) = eqn.operands
    return all(x.type.shape[axis] == 1 for axis in eqn.attrs["axes"])


def _view(eqn: Eqn) -> Eqn:
    """The operand with the axes of one element dropped."""
    (out,) = eqn.outputs
    return replace(eqn, op=get("reshape"), attrs={"shape": out.type.shape})


def _same_element(eqn: Eqn, defs: Defs) -> Replacement | None:
    """A product of one complex number is kept: it is multiplied by 1 + 0i."""
    if not _is_of_one(eqn) or (eqn.op.name == "prod" and _is_complex(eqn)):
        return None
    return _strong(eqn, _view(eqn))


def _sum(eqn: Eqn, defs: Defs) -> Replacement | None:
    (x,), (out,) = eqn.operands, eqn.outputs
    if not _is_of_one(eqn):
        return None
    if out.type.dtype.kind in "biu":
        return _strong(eqn, _view(eqn))
    element = Value(x.type.strong().with_shape(out.type.shape))
    zero = Literal.of(0, ArrayType(out.type.dtype))
    total = application("add", (element, zero), {}, eqn.source)
    if x.type.weak or total.outputs[0].type != out.type:
        return None
    view = replace(_view(eqn), outputs=(element,))
    return Replacement(eqn.outputs, (view, replace(total, outputs=eqn.outputs)))


def _first(eqn: Eqn, defs: Defs) -> Replacement | None:
    """The position of the only element."""
    if not _is_of_one(eqn):
        return None
    (out,) = eqn.outputs
    zero = Literal.of(0, ArrayType(out.type.dtype))
    if not out.type.shape:
        return Replacement((zero,))
    attrs = {"shape": out.type.shape}
    full = application("broadcast_to", (zero,), attrs, eqn.source)
    return Replacement(full.outputs, (full,))


def _is_complex(eqn: Eqn) -> bool:
    return eqn.operands[0].type.dtype.kind == "c"


def _strong(eqn: Eqn, view: Eqn) -> Replacement | None:
    """The view for the fold, whose type is never weak."""
    return None if eqn.operands[0].type.weak else Replacement(eqn.outputs, (view,))


fold_of_one_rules: dict[str, Rule] = {
    "sum": _sum,
    "argmin": _first,
    "argmax": _first,
    **dict.fromkeys(("prod", "min", "max", "any", "all"), _same_element),
}
"""By name of an op: what it is over axes of one element."""
