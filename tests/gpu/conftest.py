"""Everything in this folder needs a GPU, and is skipped where there is none."""

from functools import cache
from pathlib import Path

import pytest

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


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if missing():
                item.add_marker(pytest.mark.skip(reason=missing()))
