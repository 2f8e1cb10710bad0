"""Precisions of products on a GPU: errors beside float64, alone, in batches and in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import on_gpu

RNG = np.random.default_rng(5)

BOUNDS = {"float32": (0, 2.0**-20), "bf16x3": (1e-9, 2.0**-15), "tf32": (1e-6, 2.0**-10)}
"""Between which bounds the greatest error is, relative to the sum of absolute products."""


def error(precision: Any, x: Any, y: Any, run: Any = on_gpu) -> float:
    with tracegraph.matmul_precision(precision):
        found = run(lambda x, y: x @ y, x, y)
    wide = "c16" if x.dtype.kind == "c" else "f8"
    exact = x.astype(wide) @ y.astype(wide)
    return float((np.abs(found - exact) / (np.abs(x).astype("f8") @ np.abs(y))).max())


@pytest.mark.parametrize("precision", BOUNDS)
@pytest.mark.parametrize(
    "shapes", [((512, 300), (300, 256)), ((8, 128, 96), (8, 96, 160))], ids=str
)
def test_errors_are_those_of_the_precision(precision, shapes):
    x, y = (RNG.normal(size=shape).astype(np.float32) for shape in shapes)
    low, high = BOUNDS[precision]
    assert low <= error(precision, x, y) < high


def test_complex_products_have_tf32():
    x, y = (RNG.normal(size=(256, 256, 2)).astype("f4").view("c8")[..., 0] for _ in range(2))
    low, high = BOUNDS["tf32"]
    assert low < error("tf32", x, y) < high
    assert error("bf16x3", x, y) < BOUNDS["float32"][1]


@pytest.mark.parametrize("precision", BOUNDS)
def test_a_loop_of_products_has_the_precision(precision):
    x, y = (RNG.normal(size=(128, 128)).astype(np.float32) / 8 for _ in range(2))

    def run(x, y):
        return tracegraph.fori_loop(0, 4, lambda i, x: np.tanh(x @ y), x)

    with tracegraph.matmul_precision(precision):
        found = on_gpu(run, x, y)
    exact = x.astype("f8")
    for _ in range(4):
        exact = np.tanh(exact @ y)
    assert np.abs(found - exact).max() < {"float32": 1e-5, "bf16x3": 1e-4, "tf32": 2e-2}[precision]
