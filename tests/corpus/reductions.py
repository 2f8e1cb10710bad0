"""Reductions, what follows and precedes them in one kernel, and running folds."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import normal, positive, program, whole


@program(whole(3, 4, 5))
def sums_over_any_axes(x):
    return [x.sum(axis=a) for a in (None, 0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2), ())]


@program(whole(4, 5), whole(4, 5, seed=1))
def sibling_reductions(x, y):
    return x.sum(), y.max(), (x * y).sum(), x.min(axis=1), y.sum(axis=1), (x > y).any(axis=0)


@program(whole(6, 7))
def epilogues(x):
    return x.sum(axis=1) * 2 + 1, x.max(axis=0, keepdims=True) - x, x / x.shape[0] - x.sum()


@program(normal(5, 33), ulps=16)
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def standardised(x, axis):
    """Exact but for the root and the quotient, if the axis has a power of two of small integers."""
    mean = x.mean(axis, keepdims=True)
    deviation = np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True) + 1)
    return (x - mean) / deviation, mean, deviation


@program(whole(6, 8), whole(8, 5), whole(3, 8, 4), whole(2, 4, 3, 2))
def statistics_keep_their_axes(rows, columns, middle, pairs):
    return (
        standardised(rows, -1),
        standardised(columns, 0),
        standardised(middle, 1),
        standardised(pairs, (1, 3)),
    )


@program(whole(3, 1, 8), whole(1, 8), whole(5, 1), whole(8, 1, 2), whole(1, 1))
def statistics_keep_their_axes_beside_others_of_one_element(middle, first, last, columns, scalar):
    return (
        standardised(middle, 2),
        standardised(middle, (1, 2)),
        standardised(first, 1),
        standardised(last, 1),
        standardised(columns, 0),
        standardised(scalar, 0),
    )


@program(whole(6, 8), whole(6, 8, seed=1), whole(6, 1, seed=2), whole(6, 8, seed=3))
def layer_norm(x, weight, bias, flipped):
    y, _, deviation = standardised(x, 1)
    mirrored = y[::-1] * flipped  # of other rows than its own
    return y * weight + np.abs(bias), mirrored, deviation[::-1] + bias


@program(positive(6, 50), ulps=64)
def variance_and_norm(x):
    return x.mean(axis=1), x.var(axis=1), x.std(), np.sqrt((x * x).sum(axis=0)), np.linalg.norm(x)


@program(positive(3000), positive(40, 300, seed=1), ulps=64)
def large_reductions(x, y):
    return x.sum(), x.max(), x.argmin(), y.sum(axis=0), y.mean(axis=1), (x * x).sum() / x.sum()


@program(np.array([[3.0, np.nan, 1.0], [2.0, 2.0, 5.0], [7.0, -1.0, np.nan]]))
def extremes_with_nan(x):
    return (
        x.max(axis=1),
        x.min(),
        x.argmax(axis=1),
        x.argmin(axis=0),
        np.argmax(x),
        np.isnan(x).all(),
    )


@program(whole(5, 6, dtype="i2"), whole(7, dtype="u1", low=0))
def integer_reductions_widen(x, y):
    return (
        x.sum(),
        x.prod(axis=1),
        y.sum(),
        x.max(),
        y.mean(),
        x.argmax(),
        x.sum(axis=0, dtype="i2"),
    )


@program(whole(4, 6))
def running_folds(x):
    return (
        np.cumsum(x),
        np.cumsum(x, axis=0),
        np.cumsum(x, axis=1) * 2,
        np.cumprod(np.sign(x), axis=1),
    )


@program(whole(2000, dtype="i8"))
def long_running_sum(x):
    return np.cumsum(x)[::-1], np.cumsum(x * 2) - x


@program(whole(5, 4, dtype="bool"))
def logical_reductions(p):
    return (
        p.any(),
        p.all(axis=0),
        p.sum(),
        np.count_nonzero(p, axis=1),
        np.logical_not(p).any(axis=1),
    )


@program(whole(4, 6))
def reduction_of_a_view(x):
    return x.T.sum(axis=0), x[::2, 1:].max(), np.flip(x, 0).argmax(axis=0), np.pad(x, 1).min(axis=1)


@program(whole(4, 5))
def reduction_of_a_reduction(x):
    return x.sum(axis=0).max(), (x - x.sum(axis=1, keepdims=True)).min(), x.max(axis=1).sum() + x


@program(np.zeros((0, 4)), np.zeros((3, 0), "i4"))
def reductions_of_nothing(x, y):
    return x.sum(axis=0), y.prod(axis=1), x.any(), y.all(axis=1), x.sum(axis=1)


def folds_of_zeros(x):
    """What starts from the identity, which changes the sign of a zero; running folds do not."""
    return [
        *(x.sum(axis=a) for a in range(x.ndim)),
        x.sum(axis=()),
        x.sum(),
        x[:1, :1].sum(),
        np.sum(x[0, 0]),
        x[:1].mean(axis=0),
        x[:, :1].var(axis=1),
        x.prod(axis=1),
        x.prod(axis=()),
        np.trace(x[:1]),
        np.cumsum(x[:, :1], axis=1),
        *(np.cumsum(x, axis=a) for a in range(x.ndim)),
        np.cumsum(x[:1, :1]),
        np.cumprod(x[:, :1], axis=1),
        np.linalg.norm(x, axis=1, ord=1),
    ]


@program(
    *(
        np.full(shape, -0.0, dtype)
        for shape in ((3, 1), (1, 1), (1, 9), (2, 300))
        for dtype in ("f4", "f8")
    )
)
def negative_zeros_are_summed(*arrays):
    return [*map(folds_of_zeros, arrays), np.sum(arrays[0].astype("f2"), axis=1)]


@program(*(np.full(shape, complex(-0.0, -0.0), "c16") for shape in ((3, 1), (1, 1), (2, 2))))
def negative_complex_zeros_are_summed(*arrays):
    return [
        [folded.real, folded.imag]
        for array in arrays
        for folded in (array.sum(axis=1), array[0, 0].sum(), array.prod(axis=1), array[:1].sum(0))
    ]


@program(normal(40, 3), positive(40), ulps=64)
def all_pairs(x, weight):
    between = x[None] - x[:, None]
    distance = np.sum(between * between, axis=-1) + 0.5
    force = np.sum((weight[None] / distance)[..., None] * np.abs(between), axis=1)
    return force, np.sum(weight * np.sum(x * x, axis=1)), np.min(distance, axis=0)


@program(whole(64, 3, 8), whole(64, 48, seed=1), whole(3, 900, seed=2))
def folds_of_folds(x, y, long):
    return (
        np.sum(np.max(x, axis=1) - np.min(x, axis=1), axis=0),
        np.any(np.any(y > 8, axis=1)),
        np.sum(np.prod(long, axis=0) * long[1]),
        np.max(np.sum(np.sum(x, axis=1, keepdims=True), axis=1), axis=0),
    )


@program(normal(48, 2), normal(56, 2, seed=1), ulps=64)
def soft_minima_both_ways(x, y):
    cost = np.sum((x[:, None] - y[None]) ** 2, axis=-1)
    rows = cost - cost.min(axis=1, keepdims=True)
    first = np.log(np.sum(np.exp(-rows), axis=1))
    columns = first[:, None] - cost
    most = columns.max(axis=0)
    return first, most + np.log(np.sum(np.exp(columns - most), axis=0))


@program(whole(60, 48), whole(60, 48, seed=1))
def stored_before_its_operand_is_overwritten(x, y):
    work = x.copy()
    doubled = work * 2 - y
    work[:, :7] = y[:, :7].T.sum(axis=0)[:, None]
    columns = doubled.sum(axis=0)
    return columns, (doubled - columns).max(axis=1), work
