"""Separation of indices: what depends on outputs alone, on steps of the sum alone, and the rest.

    n * 900 + h * 30 + i * 30 + w + j   =   (n * 900 + h * 30 + w)  +  (i * 30 + j)
                                            once for each output       once for each step

A thread loads elements of the same outputs at many steps, and divisions to find an output would
otherwise be made at each.
"""

from __future__ import annotations

from dataclasses import field

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Clamp, Expr, FloorDiv, Mod, Sum, bounds, linear
from tracegraph.ir.subexpressions import subexpressions

_INDICES = (Sum, FloorDiv, Mod, Clamp)

Terms = list[tuple[Expr | int, int]]

Part = tuple[Axis, Expr]
"""An index that stands for an expression, and the expression."""


@dataclass(slots=True)
class Separated:
    """A factor in which indices stand for `own` parts, which depend on outputs alone, and for parts
    that depend on `steps` alone.
    """

    factor: Expr
    own: list[Part] = field(default_factory=list)
    steps: list[Part] = field(default_factory=list)


def separated(factor: Expr, step: Axis, first: int) -> Separated:
    """A flat factor with its indices separated; the numbers of new axes fall from `first`."""
    found = Separated(factor)
    known: dict[Expr, Expr] = {}
    depends: dict[Expr, frozenset[bool]] = {}  # whether on steps, and on outputs

    def standing(expr: Expr) -> Expr:
        """An index of its own in place of an expression that depends on one kind of axes."""
        limits = bounds(expr)
        if type(expr) not in _INDICES or limits is None:
            return expr
        if expr not in known:
            parts = found.steps if True in depends[expr] else found.own
            low, high = limits
            axis = Axis.make(first - len(found.own) - len(found.steps), high - low + 1)
            parts.append((axis, expr - low))
            known[expr] = axis + low
        return known[expr]

    new: dict[Expr, Expr] = {}
    for part in subexpressions((factor,)):
        kinds = frozenset().union(*(depends[child] for child in part.children))
        if type(part) is Axis:
            kinds = frozenset([part is step])
        depends[part] = kinds
        new[part] = part
        if len(kinds) < 2:
            continue
        if isinstance(part, Sum):
            mixed: Terms = [(new[t], f) for t, f in part.terms if len(depends[t]) > 1]
            for kind in (False, True):
                terms: Terms = [(t, f) for t, f in part.terms if depends[t] == {kind}]
                if terms:
                    whole = linear(terms)
                    depends[whole] = frozenset([kind])
                    mixed.append((standing(whole), 1))
            new[part] = linear(mixed, part.offset)
        else:
            new[part] = part.rebuilt(
                lambda child: new[child] if len(depends[child]) > 1 else standing(child)
            )
    found.factor = new[factor]
    return found
