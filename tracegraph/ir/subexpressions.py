"""Subexpressions: all below some scalar expressions, and expressions with some of it replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracegraph.ir.scalar import Expr


class Substitution(dict[Expr, Expr]):
    """What some sub-expressions are replaced by, and all that has been made anew of it, so far.

    It is no function that calls itself: such a one only the garbage collector would remove. Nor
    does it go down by recursion: expressions are deeper than Python's stack.
    """

    def __missing__(self, expr: Expr) -> Expr:
        if not expr.children:
            return expr
        waiting = [expr]
        while waiting:
            last = waiting[-1]
            below = []
            for child in last.children:
                if child not in self:
                    if child.children:
                        below.append(child)
                    else:
                        self[child] = child
            if below:
                waiting += below
            else:
                self[last] = last.rebuilt(self.__getitem__)
                waiting.pop()
        return self[expr]


def substitution(replace: Mapping[Expr, Expr]) -> Callable[[Expr], Expr]:
    """The function that replaces some sub-expressions; what its calls share is done once."""
    return Substitution(replace).__getitem__


def subexpressions(roots: Sequence[Expr], known: set[Expr] | None = None) -> list[Expr]:
    """Every expression below the roots once, operands before users.

    Those `known` are left out, with all below them, and what is found is added to them.
    """
    order: list[Expr] = []
    seen: set[Expr] = set() if known is None else known
    stack: list[Any] = [*reversed(roots)]  # None stands on an expression that is complete
    see, complete, pop = seen.add, order.append, stack.pop
    while stack:
        expr = pop()
        if expr is None:
            complete(pop())
        elif expr not in seen:
            see(expr)
            children = expr.children
            for child in children:  # most have nothing new below them
                if child not in seen:
                    if not seen.issuperset(child.children):
                        stack += (expr, None, *children[::-1])
                        break
                    see(child)
                    complete(child)
            else:  # what is seen is complete, since nothing lies below itself
                complete(expr)
    return order
