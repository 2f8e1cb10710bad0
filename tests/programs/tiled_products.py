"""Products that tiles compute: functions, shapes of operands, and NumPy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph

Case = tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]


def convolved(x: Any, w: Any) -> Any:
    """A convolution of images: (n, h, w, c) with kernels (i, j, c, o), without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, w)


def slopes(x: Any, w: Any) -> Any:
    """The derivatives of a function of a convolution, by image and kernel."""
    return tracegraph.grad(lambda x, w: np.sum(np.sin(convolved(x, w))), argnums=(0, 1))(x, w)


def with_epilogue(x: Any, w: Any, bias: Any) -> Any:
    """A convolution, a bias and a residual, of which only the positive part remains."""
    found = convolved(x, w)
    return np.maximum(found + bias + x[:, 1:-1, 1:-1, : w.shape[3]], 0)


def padded(x: Any, w: Any) -> Any:
    """A convolution of an image that is padded, in one dimension."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (2, 1))), 12, axis=1)
    return windows @ w


def of_differences(x: Any, y: Any) -> Any:
    """A product of computed factors, for each matrix of a batch."""
    left, right = x - x[:, :1], np.exp(-y * y)
    return (left[:, :, None, :] * right[:, None, :, :]).sum(-1)


def of_columns(x: Any, y: Any) -> Any:
    """A long sum with few results, whose factors are read by columns."""
    return (x[:, :, None] * y[:, None, :]).sum(0)


def of_groups(x: Any, y: Any) -> Any:
    """The sums of rows by group, as a product with a matrix of zeros and ones."""
    groups = np.argmin(x, axis=1)
    return (groups[:, None] == np.arange(x.shape[1])).astype(y.dtype).T @ y


CASES: dict[str, Case] = {
    "convolution": (convolved, ((4, 18, 17, 24), (3, 3, 24, 40))),
    "one channel": (convolved, ((8, 40, 40, 1), (3, 3, 1, 32))),
    "derivatives": (slopes, ((6, 16, 15, 16), (3, 2, 16, 32))),
    "epilogue": (with_epilogue, ((4, 18, 18, 32), (3, 3, 32, 32), (32,))),
    "padding": (padded, ((130, 700), (12, 20))),
    "batch": (of_differences, ((5, 70, 80), (5, 90, 80))),
    "small matrices": (of_differences, ((203, 23, 24), (203, 25, 24))),
    "columns": (of_columns, ((4000, 30), (4000, 20))),
    "groups": (of_groups, ((20000, 13), (20000, 11))),
    "slices": (of_columns, ((9001, 64), (9001, 16))),
}


def operands(name: str, dtype: str) -> list[Any]:
    """Arrays of a case."""
    rng = np.random.default_rng(len(name))
    return [rng.normal(size=shape).astype(dtype) for shape in CASES[name][1]]
