"""Published kernels that are refused as written: what the error says, and that it helps."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.corpus import CASES
from tests.corpus.case import positive
from tracegraph import errors

Function = Callable[..., Any]


def rewritten(function: Function, old: str, new: str) -> Function:
    """The function with part of its source replaced."""
    source = inspect.getsource(function)
    assert source.count(old) == 1
    names = dict(globals())
    exec(source.replace(old, new), names)
    changed: Function = names[function.__name__]
    return changed


DATA = positive(6, 4)
BYTES = np.array([49, 50, 51, 7], np.uint8)


def correlation(data: Any) -> Any:
    n, m = data.shape
    data = (data - data.mean(axis=0)) / (np.sqrt(n) * data.std(axis=0))
    corr = np.zeros((m, m))
    for i in range(m):
        corr[i, i] = 1.0
        corr[i + 1 :, i] = corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return corr


def covariance(data: Any) -> Any:
    data = data - np.mean(data, axis=0)
    cov = np.empty((data.shape[1], data.shape[1]))
    for i in range(data.shape[1]):
        cov[i:, i] = cov[i, i:] = data[:, i] @ data[:, i:] / (data.shape[0] - 1.0)
    return cov


def crc16(data: Any) -> Any:
    crc = 0xFFFF
    for byte in data:
        current = 0xFF & byte.astype(np.int64)
        for _ in range(8):
            if (crc & 0x0001) ^ (current & 0x0001):
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            current >>= 1
    return ~crc & 0xFFFF


def crc16_advised(data: Any) -> Any:
    crc = 0xFFFF
    for byte in data:
        current = 0xFF & byte.astype(np.int64)
        for _ in range(8):
            odd = (crc & 0x0001) ^ (current & 0x0001)
            crc = np.where(odd, (crc >> 1) ^ 0x8408, crc >> 1)
            current >>= 1
    return ~crc & 0xFFFF


ROWS = np.array([0, 2, 3, 3, 6])
COLUMNS = np.array([0, 2, 1, 0, 1, 3])
VALUES = positive(6)


def sparse_product(rows: Any, columns: Any, values: Any, x: Any) -> Any:
    y = np.zeros_like(values, shape=rows.shape[0] - 1)
    for i in range(rows.shape[0] - 1):
        there = columns[rows[i] : rows[i + 1]]
        y[i] = values[rows[i] : rows[i + 1]] @ x[there]
    return y


def sparse_product_advised(rows: Any, columns: Any, values: Any, x: Any) -> Any:
    lengths = rows[1:] - rows[:-1]
    row = tnp.repeat(np.arange(4), lengths, total_repeat_length=values.shape[0])
    return np.zeros_like(values, shape=4).at[row].add(values * x[columns])


def relaxed(u: Any) -> Any:
    u, change = u.copy(), 1.0
    while change > 1e-3:
        before = u.copy()
        u[1:-1] = (before[2:] + before[:-2]) / 2
        change = np.abs(u - before).sum()
    return u


def relaxed_advised(u: Any) -> Any:
    def step(state: Any) -> Any:
        before, _ = state
        u = before.copy()
        u[1:-1] = (before[2:] + before[:-2]) / 2
        return u, np.abs(u - before).sum()

    return tracegraph.while_loop(lambda state: state[1] > 1e-3, step, (u, 1.0))[0]


def longest_run(x: Any) -> Any:
    best = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        best[i] = np.max((best[i - 1] + x[i], x[i]))
    return best


def longest_run_advised(x: Any) -> Any:
    best = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        best[i] = tnp.max((best[i - 1] + x[i], x[i]))
    return best


Refused = tuple[Function, tuple[Any, ...], type[Exception], str, Function]

REFUSED: dict[str, Refused] = {
    "correlation": (
        *(correlation, (DATA,), errors.TracerArrayError),
        r"write corr = tracegraph\.numpy\.zeros\(\(m, m\)\) instead of corr = np\.zeros",
        rewritten(correlation, "np.zeros", "tnp.zeros"),
    ),
    "covariance": (
        *(covariance, (DATA,), errors.TracerArrayError),
        r"write cov = tracegraph\.numpy\.empty\(.* instead of cov = np\.empty\(",
        rewritten(covariance, "np.empty", "tnp.empty"),
    ),
    "crc16": (
        *(crc16, (BYTES,), errors.TracerBoolError),
        *(r"numpy\.where", crc16_advised),
    ),
    "sparse_product": (
        *(sparse_product, (ROWS, COLUMNS, VALUES, positive(4)), errors.TracerSliceError),
        *(r"the elements before a traced stop", sparse_product_advised),
    ),
    "relaxed": (
        *(relaxed, (positive(5),), errors.TracerBoolError),
        *("while_loop", relaxed_advised),
    ),
    "longest_run": (
        *(longest_run, (np.array([3, -1, 4, -9, 2]),), errors.TracerArrayError),
        *(r"write tracegraph\.numpy\.max", longest_run_advised),
    ),
}
"""For each kernel arguments, the error, what it says, and the kernel changed as it says."""


@pytest.mark.parametrize("name", REFUSED)
def test_the_error_says_what_to_write(name: str) -> None:
    function, arguments, kind, advice, changed = REFUSED[name]
    expected = function(*(np.copy(x) for x in arguments))
    with pytest.raises(kind, match=advice) as caught:
        tracegraph.jit(function, device="host")(*arguments)
    assert "test_refused_kernels.py:" in str(caught.value)
    assert f", in {name}" in str(caught.value)
    found = np.asarray(tracegraph.jit(changed, device="host")(*arguments))
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_three_of_four_published_kernels_trace_as_written() -> None:
    folders = ("kernels", "stencils", "triangular", "applications")
    traced = [c for c in CASES.values() if c.function.__module__.rpartition(".")[2] in folders]
    assert len(traced) >= 30
    assert len(traced) >= 3 * len(REFUSED)
