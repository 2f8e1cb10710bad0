"""Lazy values: what is computed only where a choice takes it, if that is worth a branch.

x = i == 340 ? v + exp(-t * t) : v        the exponential is of use at one position
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import Expr, Select
from tracegraph.ir.scalar_values import Apply

EXPENSIVE = 8
"""Cost of an op, in units of `Elementwise.cost`, from which it is worth a branch: a transcendental
function takes tens of instructions."""


def is_expensive(expr: Expr) -> bool:
    """Whether an expression by itself is worth a branch."""
    if type(expr) is not Apply:
        return False
    form = expr.op.form
    return isinstance(form, Elementwise) and form.cost >= EXPENSIVE


def lazy_choices(order: Sequence[Expr], roots: Collection[Expr]) -> dict[Select, set[Expr]]:
    """The choices, with what only their chosen value needs, where that is expensive.

    `order` has what is computed for the roots, operands before users. A choice inside of another
    one is left to that.
    """
    if not any(map(is_expensive, order)):
        return {}
    users: dict[Expr, list[Expr]] = {}
    for expr in order:
        for child in expr.children:
            users.setdefault(child, []).append(expr)
    needed = set(roots)
    found: dict[Select, set[Expr]] = {}
    inside: set[Expr] = set()
    for position in range(len(order) - 1, -1, -1):
        choice = order[position]
        if type(choice) is not Select or choice in inside:
            continue
        only: set[Expr] = set()
        for expr in reversed(order[:position]):
            if expr in needed or expr is choice.predicate or expr is choice.other:
                continue
            if all(user is choice or user in only for user in users.get(expr, ())):
                only.add(expr)
        if any(map(is_expensive, only)):
            found[choice] = only
            inside |= only
    return found
