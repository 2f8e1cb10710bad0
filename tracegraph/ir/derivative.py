"""Derivative records: how the tangent of an op's result depends on those of its operands.

    Constant()               zero
    Partials(d0, d1, …)      elementwise: t = d0·t0 + d1·t1 + …
    Linear(transpose, of)    linear in the operands `of` together: the tangent is the op itself
    Product(left, right)     linear in each of two operands alone
    Rewrite(prepare, apply)  t = apply(prepare(out, *operands), tangents), `apply` being linear
    UserRule(choose)         a function of the user's, traced where the derivative is taken
    Structural()             an op with regions, which the transforms treat by name

One record gives both modes. Tangents are built from linear ops alone, so that reverse mode is
the transpose of the tangents' equations: only `Linear`, `Product` and constant `Partials` say how.

A rule gets an emitter first: `f.sin(x)` records the op `sin` where the equations of the rule go.
Operands and results are traced values. Rules of `Partials` and `prepare` may use operators on them.
Complex derivatives are transposed without conjugation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tracegraph.generated.dataclass import dataclass


class Emitter(Protocol):
    """Records equations: each op is a method of its name."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function that records an op."""


class NoDerivativeError(Exception):
    """Raised by a rule: with these attributes or types, the op has no derivative, and why."""


Coefficient = Callable[..., Any] | int
"""1, -1 or 0; or a function of (f, out, *operands)."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The derivative is zero: the result is an integer, a bool, or piecewise constant."""


@dataclass(frozen=True, slots=True, init=False)
class Partials:
    """Partial derivatives of an elementwise op, one for each operand.

    `domain` are bounds of an interval in which the op is smooth: tests take operands from there.
    """

    of: tuple[Coefficient, ...]
    domain: tuple[float, float]

    def __init__(self, *of: Coefficient, domain: tuple[float, float] = (0.2, 0.9)) -> None:
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "domain", domain)


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear in the operands `of` together; None: in all.

    `transpose(f, ct, acc, types, *operands, **attrs)` returns a cotangent, or None for zero, for
    each of the operands that `of` names. `types` has their types, and None for an operand that
    needs no cotangent; it is also None among `operands` if it is linear. If the op `accumulates`,
    `acc` is the cotangent of operand 0 so far, or None, and what the rule returns replaces it.
    """

    transpose: Callable[..., Sequence[Any]]
    of: tuple[int, ...] | None = (0,)
    accumulates: bool = False


@dataclass(frozen=True, slots=True)
class Product:
    """Linear in each of two operands: `left(f, ct, y, **attrs)` is the cotangent of x,
    `right(f, ct, x, **attrs)` that of y.
    """

    left: Callable[..., Any]
    right: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """`prepare(f, out, *operands, **attrs)` gives values that `apply` needs.

    `apply(f, values, tangents, **attrs)` is linear in the tangents, in which None stands for zero.
    Of an op with several results, `out` is the tuple of them, and `apply` returns a tuple.

    An op may be linear in some operands as long as others have no tangent: a solution is, in the
    right-hand side. `linear` says which these are, and how its equations are then transposed.

    Where a function is differentiated, `results(f, *operands, **attrs)` takes the place of the op's
    own results, if it is given: they are the same but for what has no derivative in them.
    """

    prepare: Callable[..., Sequence[Any]]
    apply: Callable[..., Any]
    linear: Linear | None = None
    results: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """The same computation in NumPy: `function(*operands)` returns the results of the op.

    Its equations give the tangents; the results themselves stay those of the op. Messages call the
    op `label` and name `written`, the user's own function.
    """

    label: str
    written: Callable[..., Any]
    function: Callable[..., Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Jvp:
    """A rule for tangents: `function(operands, tangents)` returns those of the results.

    It is linear in the tangents, None standing for those of integers, and for a result whose
    tangent is zero. Unless it takes `zeros`, None stands for all operands without a tangent.
    `label` and `written` are as in `Reference`.
    """

    label: str
    written: Callable[..., Any]
    function: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
    zeros: bool = True


@dataclass(frozen=True, slots=True)
class UserRule:
    """Rules of ops that users make: `choose(**attrs)` returns that of an equation.

    It is a function written with NumPy, which is traced for each derivative that is taken, so that
    its own derivative is known as well. `choose` raises `NoDerivativeError` if the user gave none.
    """

    choose: Callable[..., Reference | Jvp]


@dataclass(frozen=True, slots=True)
class Structural:
    """An op with regions: `transforms/` has its rules, by the name of the op."""


Derivative = Constant | Partials | Linear | Product | Rewrite | UserRule | Structural
