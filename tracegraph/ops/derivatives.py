"""Ops that only derivatives tell from the identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.derivative import Constant, Emitter, Jvp, NoDerivativeError, Rewrite, UserRule
from tracegraph.ir.op import Elementwise, Indexed, Op, Sample, register
from tracegraph.ir.program import Atom
from tracegraph.ir.scalar import Expr
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import Lanes
from tracegraph.ops.elementwise import texts
from tracegraph.ops.tricky import tricky

stop_gradient = register(
    Op(
        "stop_gradient",
        "x itself, as a constant to derivatives.",
        lambda x: x,
        np.array,
        Elementwise(texts(biufc="{0}"), 0),
        lambda: [Sample((tricky(dtype),)) for dtype in SHORT_NAMES],
        derivative=Constant(),
    )
)


def _forbid(f: Emitter, out: Any, x: Any, *, why: str) -> NoReturn:
    """An error that says why there is none."""
    raise NoDerivativeError(why)


def _unreached(f: Emitter, values: Any, tangents: Any, *, why: str) -> NoReturn:
    raise AssertionError("the rule before has raised")


def _copy(x: Any, *, why: str) -> Any:
    return np.array(x)


forbid_derivative = register(
    Op(
        "forbid_derivative",
        "x itself, of which a derivative is an error for the reason given.",
        lambda x, *, why: x,
        _copy,
        Elementwise(texts(biufc="{0}"), 0),
        lambda: [Sample((tricky(dtype),), {"why": "a reason"}) for dtype in SHORT_NAMES],
        derivative=Rewrite(_forbid, _unreached),
    )
)


# values whose derivative is known better than their equations tell it

Rule = Callable[..., Any]
"""`rule(value, *operands, tangents, **attrs)`: the tangent of the value, linear in the `tangents`
of the operands, in NumPy's words; None stands for one that is zero. It works on any number of
leading axes more, those of vmap."""

_RULES: dict[str, Rule] = {}

_FURTHER = (
    *("tracegraph.numpy.even_functions", "tracegraph.numpy.powers"),
    *("tracegraph.special.higher_derivatives", "tracegraph.linalg.cofactors"),
    "tracegraph.linalg.complete_factors",
)
"""Modules that enter rules for derivatives of derivatives; imported when a rule is missing."""


def derivative_rule(name: str) -> Callable[[Rule], Rule]:
    """Enter a rule under the name of the function whose derivative it is.

    Raises:
        ValueError: the name is taken.
    """

    def enter(rule: Rule) -> Rule:
        if name in _RULES:
            raise ValueError(f"a rule named {name!r} is entered already")
        _RULES[name] = rule
        return rule

    return enter


def _value_type(value: ArrayType, *operands: ArrayType, of: str, **attrs: Any) -> ArrayType:
    return value.strong()


def _value(value: Any, *operands: Any, of: str, **attrs: Any) -> Any:
    return np.array(value)


def _element(index: tuple[Expr, ...], operands: Sequence[Any], out: Any, **attrs: Any) -> Expr:
    found: Expr = operands[0][index]
    return found


def _spread(lanes: Lanes, operands: Sequence[Atom], batched: Sequence[bool], **attrs: Any) -> Atom:
    """All operands have the lanes in front, which rules allow for."""
    spread = [lanes.spread(x, flag) for x, flag in zip(operands, batched, strict=True)]
    return lanes.emit("with_derivative", *spread, **attrs)


def _chosen(*, of: str, **attrs: Any) -> Jvp:
    """The rule that is entered under the name."""
    if of not in _RULES:
        for module in _FURTHER:
            import_module(module)
    rule = _RULES[of]

    def tangents_of(operands: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        return (partial(rule, *operands, **attrs)(tangents=tangents[1:]),)

    return Jvp(of, rule, tangents_of, zeros=False)


with_derivative = register(
    Op(
        "with_derivative",
        "x itself, as the function `of` the other operands, whose derivative a rule gives.",
        _value_type,
        _value,
        Indexed(_element),
        lambda: [
            Sample(
                (np.array(3.0), np.array([0.0, 3.0])),
                {"of": "norm", "axes": (-1,), "keepdims": False, "weight": 1.0},
            )
        ],
        batch=_spread,
        derivative=UserRule(_chosen),
    )
)
