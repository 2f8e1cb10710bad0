"""Building Programs by hand, of ops and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tracegraph.ops  # noqa: F401  (registers the ops)
from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.op import get
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.user_source import Source

_DTYPES = {name: dtype for dtype, name in SHORT_NAMES.items()}


def value(text: str) -> Value:
    """A value of a type in text form: `f64[2,3]`, `~i64[]`."""
    name, _, extents = text.lstrip("~").rstrip("]").partition("[")
    shape = tuple(int(n) for n in extents.split(",") if n)
    return Value(ArrayType(_DTYPES[name], shape, text.startswith("~")))


def literal(x: Any) -> Literal:
    return Literal.of(x, type_of(x))


def apply(
    name: str, *operands: Atom, regions: Sequence[Region] = (), line: int = 0, **attrs: Any
) -> Eqn:
    """An equation with the output types that the op computes; `line` gives it a source."""
    op = get(name)
    types = op.result_types([a.type for a in operands], attrs, tuple(regions))
    source = Source("/home/user/solver.py", line, "solve") if line else None
    return Eqn(op, operands, tuple(Value(t) for t in types), attrs, tuple(regions), source)


def out(eqn: Eqn) -> Value:
    (only,) = eqn.outputs
    return only


def region(params: Sequence[Value], eqns: Sequence[Eqn], *results: Atom) -> Region:
    return Region(tuple(params), tuple(eqns), results)


def program(
    params: Sequence[Value], eqns: Sequence[Eqn], *results: Atom, constants: Sequence[Any] = ()
) -> Program:
    arrays = tuple(np.asarray(c) for c in constants)
    return Program("solve", region(params, eqns, *results), arrays)
