"""TRACEGRAPH_HOST: what it takes."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.choice import VARIABLE


def test_another_value_is_refused_at_the_first_use(monkeypatch):
    monkeypatch.setenv(VARIABLE, "fast")
    f = tracegraph.jit(lambda x: x + 1, device="host")
    with pytest.raises(ValueError, match=r"TRACEGRAPH_HOST is 'fast'; it takes 'plain'"):
        f(np.ones(3))
    monkeypatch.setenv(VARIABLE, "")
    np.testing.assert_array_equal(np.asarray(f(np.ones(3))), 2 * np.ones(3))
