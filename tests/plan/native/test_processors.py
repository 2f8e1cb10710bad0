"""The same bits from processors with other vectors: code for fewer instructions, run here."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

from lowering.native.compilation import compiler
from tests.plan.native.running_natively import native

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="other levels are of x86-64"
)


@pytest.fixture
def with_vectors_of_256_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for processors that have AVX2 and FMA, and nothing newer."""
    monkeypatch.setattr(compiler, "processor", lambda: ("x86-64-v3", ""))


def computed(x: Any, y: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return (
        powers / powers.sum(1, keepdims=True),
        np.sin(x) * np.log(np.abs(x)) + np.tanh(y),
        x.sum(),
        x.sum(0),
        np.var(y),
        np.cumsum(x, 0),
        np.argmax(x, 1),
        (x.astype("f4") * 3).sum(1),
    )


def arguments() -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    return random.normal(size=(9, 2050)), random.normal(size=2050)


@pytest.fixture(scope="module")
def own_results() -> Any:
    return native(computed, *arguments())


def test_results_are_the_same(own_results: Any, with_vectors_of_256_bits: None) -> None:
    for one, other in zip(own_results, native(computed, *arguments()), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
