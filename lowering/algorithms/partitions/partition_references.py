"""What the kernels for tridiagonal systems compute, with NumPy: by halves, of spans whose extents
are powers of two.

Equations are arrays of shape (…, 2, 4 + k): the factors of the unknowns before and at the first
row, at and behind the last one, and k right-hand sides. Ends are those unknowns, (…, 4, k). In
memory, the last two axes are one. Systems with k of their columns count as systems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lowering.algorithms.partitions.partition import Partition
from tracegraph.ir.op import get
from tracegraph.ops.factorizations.matrices import NDArray


def _solve(by: Partition, dl: Any, d: Any, du: Any, b: Any) -> Any:
    wide = b.reshape(*d.shape, -1)
    return get("tridiagonal_solve").reference(dl, d, du, wide).reshape(b.shape)


def _reduce(by: Partition, dl: Any, d: Any, du: Any, b: Any) -> Any:
    whole, _ = _merged(_equations(by, dl, d, du, b))
    return whole.reshape(*whole.shape[:2], -1)


def _finish(by: Partition, dl: Any, d: Any, du: Any, b: Any, ends: Any) -> Any:
    _, levels = _merged(_equations(by, dl, d, du, b))
    two = _parted(ends.reshape(*ends.shape[:2], 4, by.columns), levels)[..., 1:3, :]
    k, (*batch, n) = b.size // d.size, d.shape
    x = two.reshape(-1, -(-k // by.columns), ends.shape[1] * by.span, by.columns)[:, :, :n]
    return np.moveaxis(x, 1, 2).reshape(*batch, n, -1)[..., :k].reshape(b.shape)


def _solve_spans(by: Partition, rest: Any) -> Any:
    whole, levels = _merged(_filled_up(rest, by.lanes))
    return _of_spans(_parted(_closed(whole), levels), rest)


def _reduce_spans(by: Partition, rest: Any) -> Any:
    whole, _ = _merged(_filled_up(rest, by.lanes))
    return whole.reshape(*whole.shape[:2], -1)


def _finish_spans(by: Partition, rest: Any, ends: Any) -> Any:
    _, levels = _merged(_filled_up(rest, by.lanes))
    return _of_spans(_parted(ends.reshape(*ends.shape[:2], 4, by.columns), levels), rest)


OF_ROWS: Mapping[str, Callable[..., Any]] = {"solve": _solve, "reduce": _reduce, "finish": _finish}
OF_SPANS: Mapping[str, Callable[..., Any]] = {
    "solve": _solve_spans,
    "reduce": _reduce_spans,
    "finish": _finish_spans,
}


def _equations(by: Partition, dl: Any, d: Any, du: Any, b: Any) -> NDArray:
    """Those of each two rows, (systems, spans, rows of a span / 2, 2, 4 + k).

    Spans are filled up with rows whose unknowns are 0.
    """
    n, columns = d.shape[-1], b.size // d.size
    rest, groups = -n % by.span, -(-columns // by.columns)
    padded = np.pad(b.reshape(-1, n, columns), ((0, 0), (0, rest), (0, -columns % by.columns)))
    right = np.moveaxis(padded.reshape(-1, n + rest, groups, by.columns), 2, 1)
    low, middle, up = (np.array(x).reshape(-1, n) for x in (dl, d, du))
    low[:, 0] = up[:, -1] = 0
    low, middle, up = (
        np.pad(x, ((0, 0), (0, rest)), constant_values=fill)[:, None]
        for x, fill in ((low, 0), (middle, 1), (up, 0))
    )
    two = np.zeros((*right.shape[:2], (n + rest) // 2, 2, 4 + by.columns), b.dtype)
    for row, places in enumerate(((0, 1, 2), (1, 2, 3))):
        for place, x in zip(places, (low, middle, up), strict=True):
            two[..., row, place] = x[..., row::2]
        two[..., row, 4:] = right[:, :, row::2]
    return two.reshape(right.shape[0] * groups, -1, by.span // 2, 2, 4 + by.columns)


def _filled_up(rest: Any, lanes: int) -> NDArray:
    """Equations of spans as spans of `lanes` of them."""
    systems, spans, size = rest.shape
    k = size // 2 - 4
    more = np.zeros((systems, -spans % lanes, 2, 4 + k), rest.dtype)
    more[..., 0, 1] = more[..., 1, 2] = 1
    whole = np.concatenate([rest.reshape(systems, spans, 2, 4 + k), more], 1)
    return whole.reshape(systems, -1, lanes, 2, 4 + k)


def _of_spans(ends: NDArray, rest: Any) -> NDArray:
    """The ends of spans that there are."""
    systems, spans, _ = rest.shape
    return ends.reshape(systems, -1, ends.shape[-2] * ends.shape[-1])[:, :spans]


def _merged(equations: NDArray) -> tuple[NDArray, list[NDArray]]:
    """The equations that are left along the third axis from the end, and what is eliminated by
    level.
    """
    levels = []
    while equations.shape[-3] > 1:
        equations, between = _halved(equations)
        levels.append(between)
    return equations[..., 0, :, :], levels


def _parted(ends: NDArray, levels: list[NDArray]) -> NDArray:
    """From the ends of all to those of each, along a new axis, the third one from the end."""
    ends = ends[..., None, :, :]
    for between in reversed(levels):
        middle = between[..., 4:] - between[..., :4] @ ends
        pairs = [np.concatenate([ends[..., :2, :], middle], -2)]
        pairs.append(np.concatenate([middle, ends[..., 2:, :]], -2))
        ends = np.stack(pairs, -3).reshape(*ends.shape[:-3], -1, *ends.shape[-2:])
    return ends


def _closed(whole: NDArray) -> NDArray:
    """The ends of systems, before and behind which there is nothing."""
    ends = np.zeros((*whole.shape[:-2], 4, whole.shape[-1] - 4), whole.dtype)
    _, ends[..., 1:3, :] = _eliminated(whole[..., 1:3], whole[..., 4:])
    return ends


def _halved(equations: NDArray) -> tuple[NDArray, NDArray]:
    """Neighbours merged: what is left, and the two unknowns between them, both (…, 2, 4 + k)."""
    before, after = equations[..., ::2, :, :], equations[..., 1::2, :, :]
    zero = np.zeros_like(before[..., :2])
    top = np.concatenate([before[..., :2], zero, before[..., 4:]], -1)
    bottom = np.concatenate([zero, after[..., 2:]], -1)
    between = np.concatenate([before[..., 2:4], after[..., :2]], -2)
    return _eliminated(between, np.concatenate([top, bottom], -2))


def _eliminated(own: NDArray, others: NDArray) -> tuple[NDArray, NDArray]:
    """Rows without the two unknowns whose factors are `own`, and the rows that give these."""
    rows = np.concatenate([own, others], -1)
    with np.errstate(all="ignore"):
        for k in range(2):
            largest = np.argmax(np.abs(rows[..., k:, k]), -1)[..., None, None] + k
            pivot = np.take_along_axis(rows, largest, -2)
            np.put_along_axis(rows, largest, rows[..., k : k + 1, :], -2)
            rows[..., k : k + 1, :] = pivot
            factors = rows[..., k + 1 :, k : k + 1] / pivot[..., k : k + 1]
            rows[..., k + 1 :, :] -= factors * pivot
        second = rows[..., 1, 2:] / rows[..., 1, 1, None]
        first = (rows[..., 0, 2:] - rows[..., 0, 1, None] * second) / rows[..., 0, 0, None]
    return rows[..., 2:, 2:], np.stack([first, second], -2)
