"""Results are laid out as NumPy's are: views of them alias what NumPy's views alias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.traced import assert_traced_equals_eager

X = np.arange(6.0).reshape(2, 3)
CUBE = np.arange(24.0).reshape(2, 3, 4)

MADE: dict[str, Any] = {
    "x + 1": lambda x: x + 1,
    "x.T + 1": lambda x: x.T + 1,
    "x.T + x.T": lambda x: x.T + x.T,
    "by rows and columns": lambda x: x.T + np.ones(x.T.shape),
    "with its copy": lambda x: x.T * x.T.copy(),
    "sin": lambda x: np.sin(x.T),
    "negative": lambda x: -x.T,
    "a chain": lambda x: (x.T + 1) * 2 - x.T,
    "comparison": lambda x: (x.T > 1) * 1.0,
    "astype": lambda x: x.T.astype(np.float32),
    "where": lambda x: np.where(x.T > 1, x.T, 0),
    "clip": lambda x: np.clip(x.T, 0, 3),
    "round": lambda x: np.round(x.T, 1),
    "nan_to_num": lambda x: np.nan_to_num(x.T),
    "real": lambda x: (x.T + 1j * x.T).real,
    "zeros_like": lambda x: np.zeros_like(x.T),
    "ones_like": lambda x: np.ones_like(x.T + 1),
    "full_like": lambda x: np.full_like(x.T, 2),
    "zeros_like by rows": lambda x: np.zeros_like(x.T, order="C"),
    "np.copy": lambda x: np.copy(x.T + 1),
    "copy": lambda x: (x.T + 1).copy(),
    "sort": lambda x: np.sort(x.T),
    "cumsum": lambda x: np.cumsum(x.T, 0),
    "concatenate": lambda x: np.concatenate([x.T, x.T]),
    "stack": lambda x: np.stack([x.T, x.T]),
    "a slice": lambda x: x.T[::2] + 1,
    "reversed": lambda x: x[::-1] + 1,
    "swapaxes": lambda x: np.swapaxes(x, 0, -1) * 2,
    "moveaxis": lambda x: np.moveaxis(x, 0, -1) * 2,
    "sum": lambda x: np.sum(x[..., None].T + 0, axis=0),
    "broadcast": lambda x: x.T[:, None] + x.T,
    "matmul": lambda x: np.matmul(x.T.copy(), x) if x.ndim == 2 else x + 1,
}
VIEWED: dict[str, Any] = {
    "ravel": lambda y: y.ravel(),
    "reshape": lambda y: y.reshape(-1),
    "reshape to rows": lambda y: y.reshape(y.shape[0], -1),
    "ravel K": lambda y: np.ravel(y, "K"),
    "ravel F": lambda y: np.ravel(y, "F"),
    "T.reshape": lambda y: y.T.reshape(-1),
    "flatten K": lambda y: y.flatten("K"),
}


@pytest.mark.parametrize("value", [X, CUBE], ids=["2d", "3d"])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("viewed", VIEWED)
def test_writes_to_a_view_of_a_result(viewed: str, made: str, value: Any) -> None:
    def f(x: Any) -> Any:
        y = MADE[made](x)
        view = VIEWED[viewed](y)
        before = view + 0
        view[1:4] = -1
        y[0] += 5
        return y, view, before

    assert_traced_equals_eager(f, value)


def test_orders_of_repeated_elements() -> None:
    def f(x: Any) -> Any:
        y = np.broadcast_to(x, (2, *x.shape))
        return np.ravel(y, "K"), y.flatten("K"), np.ravel(x[:, None] + np.zeros((1, 2, 1)), "K")

    assert_traced_equals_eager(f, X)
