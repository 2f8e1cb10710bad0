"""einops and autoray know Arrays and traced values once their modules here are imported."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tracegraph

X = np.arange(24.0).reshape(2, 3, 4)


def agree(function: Any, of_numpy: Any = None) -> None:
    expected = (of_numpy or function)(X)
    for found in (function(tracegraph.asarray(X)), tracegraph.jit(function, device="host")(X)):
        assert isinstance(found, tracegraph.Array)
        np.testing.assert_allclose(found, expected)


def test_einops() -> None:
    einops = pytest.importorskip("einops")
    import_module("tracegraph.interop.einops")
    agree(lambda x: einops.rearrange(x, "a b c -> (a c) b"))
    agree(lambda x: einops.reduce(x, "a b c -> b", "mean"))
    agree(lambda x: einops.repeat(x, "a b c -> a b c d", d=2))
    agree(lambda x: einops.einsum(x, x, "a b c, a d c -> b d"))


def test_autoray() -> None:
    autoray = pytest.importorskip("autoray")
    import_module("tracegraph.interop.autoray")
    agree(lambda x: autoray.do("sum", autoray.do("exp", x), axis=1))
    agree(lambda x: autoray.do("linalg.norm", x))
