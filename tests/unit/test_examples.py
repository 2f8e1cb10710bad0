"""The examples that need nothing but this package give what they say, on a few inputs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
from batching import assert_same, looped

import tracegraph

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_orbits_close_after_steps_of_their_own() -> None:
    orbit = example("many_orbits").orbit
    eccentricities = np.array([0.0, 0.3, 0.7, 0.95])
    found = tracegraph.jit(tracegraph.vmap(orbit), device="host")(eccentricities)
    alone = looped(tracegraph.jit(orbit, device="host"), eccentricities)
    assert_same(tracegraph.tree.map(np.asarray, found), alone)
    (x, y, _, _), taken, _ = alone
    assert np.hypot(x - (1 - eccentricities), y).max() < 1e-5
    assert list(taken) == sorted(set(taken)), "each takes more steps than the one before"
