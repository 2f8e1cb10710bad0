"""`pad` in all modes of NumPy's, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy, expressions

ARGUMENTS = {
    "x": np.array([[3.5, -1.0, 2.0], [0.25, 7.0, -4.0]]),
    "i": np.array([[3, -1, 2, 9], [0, 7, -4, 5]], np.int16),
    "u": np.array([1, 200, 3], np.uint8),
    "z": np.array([1 + 2j, -3j]),
    "e": np.zeros((2, 0)),
    "one": np.array([5.0]),
    "b": np.array([True, False, True]),
    "h": np.array([1.5, 2.25, -8.0], np.float16),
    "f": np.float32(2.5),
}

EXPRESSIONS = [
    *[f"np.pad({a}, {w}, {m!r})"
      for a, w in [("x", 2), ("i", "((1, 3), (0, 5))"), ("u", "(4, 2)"), ("z", "(5, 1)"),
                   ("one", 3), ("h", 2), ("f", 1), ("e", "((1, 1), (0, 0))"), ("e", 1)]
      for m in ["linear_ramp", "mean", "median", "maximum", "minimum", "edge", "wrap", "reflect"]
      if (a, m) not in {("z", "median"), ("z", "maximum"), ("z", "minimum")}],
    *[f"np.pad({a}, {w}, {m!r}, reflect_type={t!r})"
      for a, w in [("x", "((0, 3), (7, 1))"), ("i", 6), ("u", "(2, 9)"), ("one", 2), ("h", 5)]
      for m in ["reflect", "symmetric"] for t in ["odd", "even"]],
    *[f"np.pad({a}, 3, {m!r}, stat_length={n})"
      for a in ["x", "i"] for m in ["mean", "median", "maximum", "minimum"]
      for n in ["1", "2", "(2, 1)", "((1, 2), (3, 9))", "None"]],
    *expressions("""
        np.pad(x, 2, 'maximum', stat_length=0); np.pad(x, 2, 'mean', stat_length=-1);
        np.pad(x, 2, constant_values=(1, 2));
        np.pad(x, ((1, 0), (2, 3)), constant_values=((1, 2), (3, 4)));
        np.pad(x, 1, constant_values=((x[0, 0], x[0, 1]), (x[0, 2], x[1, 0])));
        np.pad(i, 3, 'linear_ramp', end_values=((-7, 5), (100, 0))); np.pad(x, {1: 2}, 'mean');
        np.pad(x, {-1: (0, 2), 0: 1}, 'edge'); np.pad(b, 2, 'maximum'); np.pad(b, 2, 'reflect');
        np.pad(f, [], 'edge'); np.pad(x, 3.4); np.pad(x, '3'); np.pad(x, ((-1, 0), (0, 0)));
        np.pad(x, 1, 'unknown'); np.pad(x, 1, 'edge', reflect_type='even');
        np.pad(x, 1, 'mean', constant_values=0); np.pad(x, np.uint8(1))
    """),
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_padding_is_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


def test_a_function_pads() -> None:
    def ramp(vector: Any, widths: Any, axis: int, options: Any) -> None:
        vector[: widths[0]] = options["value"] + axis
        vector[len(vector) - widths[1] :] = vector[widths[0]]

    def padded(x: Any) -> Any:
        return np.pad(x, ((1, 2), (2, 0)), ramp, value=10)

    x = ARGUMENTS["x"]
    np.testing.assert_array_equal(tracegraph.jit(padded, device="host")(x), padded(x))


@pytest.mark.parametrize("mode", ["constant", "edge", "mean", "reflect", "linear_ramp"])
def test_the_result_is_another_array(mode: Any) -> None:
    def function(x: Any) -> Any:
        y = x * 1
        z = np.pad(y, 0, mode)
        z[0] = 7
        return y

    x = np.arange(3.0)
    np.testing.assert_array_equal(tracegraph.jit(function, device="host")(x), x)


MODES = [
    ("linear_ramp", {"end_values": (1, 2)}),
    ("mean", {"stat_length": 2}),
    ("median", {}),
    ("maximum", {}),
    ("minimum", {"stat_length": (1, 2)}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}),
]


@pytest.mark.parametrize(("mode", "options"), MODES)
def test_padding_is_batched_and_differentiated(mode: Any, options: dict[str, Any]) -> None:
    def padded(a: Any) -> Any:
        return np.pad(a, ((2, 6), (1, 3)), mode, **options)

    x = np.random.default_rng(0).normal(size=(2, 4, 3))
    batched = tracegraph.jit(tracegraph.vmap(padded), device="host")(x)
    expected = np.stack([padded(a) for a in x])
    np.testing.assert_allclose(np.asarray(batched), expected, rtol=1e-12)

    weights = np.random.default_rng(1).normal(size=expected[0].shape)
    slope = tracegraph.jit(tracegraph.grad(lambda a: (padded(a) * weights).sum()), device="host")
    found, step = np.asarray(slope(x[0])), 1e-6
    for place in np.ndindex(x[0].shape):
        change = np.zeros_like(x[0])
        change[place] = step
        difference = ((padded(x[0] + change) - padded(x[0] - change)) * weights).sum()
        np.testing.assert_allclose(found[place], difference / (2 * step), atol=1e-6)
