"""Random programs of views and writes, for arrays of NumPy, Arrays and traced ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

RULES = 27

STEP = st.tuples(st.integers(0, RULES - 1), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3))
"""A rule, two of the arrays so far, and a number."""

STEPS = st.lists(STEP, min_size=3, max_size=10)


def program(steps: list[tuple[int, int, int, int]], a: Any) -> tuple[Any, ...]:
    """All arrays that are made from `a`, of shape (3, 4), once the last step has been taken. `a` is
    read-only, and is laid out by rows.

    Reads of single elements are left out: where NumPy gives a number, `x[0] += 1` rebinds.
    """
    arrays = [a + 0.0, a.T * 2.0]
    for rule, i, j, k in steps:
        x, y = arrays[i % len(arrays)], arrays[j % len(arrays)]
        match rule:
            case 26:
                made = _new(x, a, k)
            case _ if rule < 10:
                made = _view(rule, x, k)
            case _:
                made = _written(rule, x, y, k)
        if made is not None:
            arrays.append(made)
    return tuple(arrays)


def _view(rule: int, x: Any, k: int) -> Any:
    match rule:
        case 0:
            return x[k % x.shape[0] :]
        case 1:
            return x[k % x.shape[0]] if x.ndim > 1 else x[::-1]
        case 2:
            return x.T
        case 3:
            return x.reshape(-1)
        case 4:
            return x.reshape((x.shape[-1], x.size // x.shape[-1]))
        case 5:
            return np.swapaxes(x, 0, -1)
        case 6:
            return x[..., ::2]
        case 7:
            return np.expand_dims(x, k % (x.ndim + 1)) if x.ndim < 3 else x[:, k % x.shape[1]]
        case 8:
            made = (x.copy, x.ravel, lambda: x.ravel("K"), lambda: x.reshape(-1, order="F"))
            return made[k]()
        case _:
            return x.real if k else x.view(np.int64).view(np.float64)


def _new(x: Any, a: Any, k: int) -> Any:
    """New arrays, whose layouts decide what views of them there are."""
    match k:
        case 0:
            return x + a if x.shape == a.shape else x + a.T if x.shape == a.T.shape else -x
        case 1:
            return x.copy("K")
        case 2:
            return x[..., [0, -1]]
        case _:
            return a.T[1:].reshape(-1) if x.ndim > 1 else a[::-1].T + 1


def _written(rule: int, x: Any, y: Any, k: int) -> Any:
    """Write to `x`; what is made, if anything."""
    n = x.shape[0]
    match rule:
        case 10:
            x[k % n] = k
        case 11:
            x[k % n :] += 1
        case 12:
            x += k
        case 13:
            x[x > 5] = k
        case 14 if x.shape == y.shape:
            x[...] = y
        case 15:
            x[1:] = x[:-1]
        case 16:
            x[np.array([0, n - 1])] = k
        case 17:
            x[..., k % x.shape[-1]] *= 2
        case 18:
            np.add.at(x, np.array([0, 0]), 1.0)
        case 19 if x.shape == y.shape:
            np.copyto(x, y + 1)
        case 20 if x.shape == y.shape:
            np.subtract(x, y, out=x)
        case 21:
            x.sort(axis=-1)
        case 22:
            x.fill(k)
        case 23:
            x.flat[k % x.size] = 7
        case 24:
            np.put(x, [0, x.size - 1], [k, k + 1])
        case _:
            return x + y[:1, ..., :1].sum() if y.ndim > 1 else x * 2
    return None
