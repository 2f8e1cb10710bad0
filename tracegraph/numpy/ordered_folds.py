"""Folds with functions that are not associative: one element after the other, as a loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph import control
from tracegraph import numpy as functions
from tracegraph.numpy.dispatching.dispatch import copied, lifted
from tracegraph.numpy.elementwise import where as choose


def folded_in_order(ufunc: np.ufunc, start: Any, rows: Any, mask: Any = True) -> Any:
    """`f(f(start, rows[0]), rows[1])` and so on, without the rows where a mask is false.

    `start` has the shape of a row, and is the result if there is none.
    """
    start = copied(lifted(functions.broadcast_to(start, rows.shape[1:])))
    if rows.shape[0] == 0:
        return start
    function = getattr(functions, ufunc.__name__)
    if mask is True:
        return control.scan(lambda c, row: (function(c, row), None), start, rows)[0]

    def step(c: Any, pair: tuple[Any, Any]) -> tuple[Any, None]:
        row, is_folded = pair
        return choose(is_folded, function(c, row), c), None

    mask = lifted(functions.broadcast_to(mask, rows.shape))
    return control.scan(step, start, (rows, mask))[0]


def accumulated_in_order(ufunc: np.ufunc, rows: Any) -> Any:
    """The first row, and what folding up to each other one gives."""
    if rows.shape[0] < 2:
        return copied(rows)
    function = getattr(functions, ufunc.__name__)

    def step(c: Any, row: Any) -> tuple[Any, Any]:
        folded = function(c, row)
        return folded, folded

    return functions.concatenate([rows[:1], control.scan(step, rows[0], rows[1:])[1]])
