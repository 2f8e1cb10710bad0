"""Draws at the limits of their parameters, for devices: functions of a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracegraph import random

SHAPES = np.array([0.0, 1e-310, 0.3, 1.0, 7.5, 1e9, 1e300, np.inf])
LOWS = np.array([-np.inf, -1.0, 2.5, 9.0, 40.0, 1e9, -41.0, -np.inf, 5.0])
HIGHS = np.array([np.inf, 30.0, 2.75, np.inf, 41.0, np.inf, -40.0, -9.0, 5.0])

EXACT: dict[str, Callable[[Any], Any]] = {
    "uniform of all": lambda key: random.uniform(key, (500,), np.float64, -1.7e308, 1.7e308),
    "uniform of all, float32": lambda key: random.uniform(key, (500,), np.float32, -3e38, 3e38),
    "narrow uniform": lambda key: random.uniform(key, (500,), np.float64, 1.0, 1 + 2.0**-50),
    "rare": lambda key: random.bernoulli(key, np.array([1e-9, 2e-4, 1e-3]), (500, 3)),
    "rare, float16": lambda key: random.bernoulli(key, np.float16(2e-3), (500,)),
    "geometric": lambda key: random.geometric(key, np.array([1e-300, 1.0, 0.0]), (50, 3)),
}
"""Those whose bits are the same everywhere."""

ROUNDED: dict[str, Callable[[Any], Any]] = {
    "normal in tails": lambda key: random.truncated_normal(key, LOWS, HIGHS, (50, 9)),
    "normal in tails, float32": lambda key: random.truncated_normal(
        key, LOWS, HIGHS, (50, 9), np.float32
    ),
    "normal in tails, float16": lambda key: random.truncated_normal(
        key, LOWS[:5], HIGHS[:5], (50, 5), np.float16
    ),
    "gamma": lambda key: random.gamma(key, SHAPES, (20, 8)),
    "loggamma": lambda key: random.loggamma(key, SHAPES, (20, 8)),
    "beta": lambda key: random.beta(key, SHAPES, SHAPES[:, None], (8, 8)),
    "dirichlet": lambda key: random.dirichlet(
        key, np.array([[0.0, 1.0, 2.0], [0.0, 0, 0]]), (9, 2)
    ),
    "t": lambda key: random.t(key, SHAPES[2:], (20, 6)),
    "f": lambda key: random.f(key, SHAPES, SHAPES[3:, None], (5, 8)),
    "weibull": lambda key: random.weibull_min(key, 1e-300, np.array([0.004, 0.1, 2.0]), (20, 3)),
    "ball": lambda key: random.ball(key, 2, 1e12, (50,)),
}
