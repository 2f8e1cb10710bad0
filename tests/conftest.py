"""What all tests share: garbage collection, soak tests, and how many examples hypothesis tries."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile(
    "ci", max_examples=40, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile("long", max_examples=2500, deadline=None, suppress_health_check=SLOW)
settings.load_profile("ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Soak tests run only where the marker expression names them: ``-m soak``."""
    if "soak" in config.option.markexpr:
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    if soak:
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_collection_finish() -> None:
    """Full collections during tests skip what collection made: thousands of items and modules.

    Tests collect garbage often. tests/plan took 386 s without this and 183 s with it. Workers of
    xdist collect their own items, and come here as well.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def frozen_survivors() -> Iterator[None]:
    """They skip what survives the tests of earlier modules, too: caches, interned types.

    Builds that fail at each call, with a collection after each, took 60 s behind 4,000 other tests
    without this and 26 s with it.
    """
    yield
    gc.collect()
    gc.freeze()
