"""Traversal and substitution of scalar expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracegraph.ir.scalar import Expr


class Substitution(dict[Expr, Expr]):
    """Replacements of sub-expressions, and the rebuilt form of every expression looked up so far.

    It is a dict and no recursive closure, which only the garbage collector would free. It uses a
    stack of its own, since expressions are deeper than Python's.
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
    """The function that replaces some sub-expressions. Its calls share what they have rebuilt."""
    return Substitution(replace).__getitem__


def subexpressions(roots: Sequence[Expr], known: set[Expr] | None = None) -> list[Expr]:
    """Postorder traversal: every expression below the roots once, operands before users.

    Skips the `known` expressions and all below them, and adds what it finds to them.
    """
    order: list[Expr] = []
    seen: set[Expr] = set() if known is None else known
    stack: list[Any] = [*reversed(roots)]  # None precedes a complete expression
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
            else:  # all its children are complete
                complete(expr)
    return order
