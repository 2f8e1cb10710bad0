"""Everything in this folder needs a GPU, and is skipped where there is none."""

import gc
from functools import cache
from pathlib import Path

import pytest

import tracegraph

FOLDER = Path(__file__).parent


@cache
def missing():
    """Why there is no usable GPU, or None."""
    try:
        from cuda.core import Device

        Device(0).set_current()
    except Exception as error:
        return f"no usable GPU: {error}"
    return None


@pytest.fixture
def fresh():
    """Nothing is left of other tests, nor of this one."""
    gc.collect()
    tracegraph.reset()
    yield
    tracegraph.memory.set_budget(None)
    gc.collect()
    tracegraph.reset()


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if missing():
                item.add_marker(pytest.mark.skip(reason=missing()))
