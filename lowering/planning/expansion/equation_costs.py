"""Costs of equations: the scalar work of one element of a result."""

from __future__ import annotations

from tracegraph.ir.op import Elementwise, Indexed, Reduction
from tracegraph.ir.program import Eqn, Literal

MAPPED = (Elementwise, Indexed)
"""Forms whose results can be computed where they are used."""

COMPUTED = (*MAPPED, Reduction)
"""Forms that are made of scalar expressions."""


def own_cost(eqn: Eqn) -> int:
    """Scalar work of one element of an equation's result, without its operands'."""
    form = eqn.op.form
    if isinstance(form, Elementwise):
        return form.cost
    return 2 * len(eqn.operands) if isinstance(form, Indexed) and not form.view else 0


def is_free(eqn: Eqn) -> bool:
    """Whether the result only renames elements, or is computed from the index alone."""
    form = eqn.op.form
    return isinstance(form, Indexed) and (
        form.view or all(isinstance(a, Literal) for a in eqn.operands)
    )
