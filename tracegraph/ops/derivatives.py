"""Ops that only derivatives tell from the identity."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.derivative import Constant, Emitter, NoDerivativeError, Rewrite
from tracegraph.ir.op import Elementwise, Op, Sample, register
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
