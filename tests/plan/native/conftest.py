"""Comparisons in this folder are of native code."""

from __future__ import annotations

import pytest

from tests.helpers.devices import Device
from tests.plan.native.running_natively import NativeDevice


@pytest.fixture(scope="module")
def device(request: pytest.FixtureRequest) -> Device:
    """Runs the programs of a module as machine code."""
    return NativeDevice(request.module.PROGRAMS)
