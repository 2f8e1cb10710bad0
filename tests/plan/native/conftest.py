"""Comparisons in this folder are of native code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lowering.disk_cache.location import CACHE_VARIABLE
from tests.helpers.devices import Device
from tests.plan.native.running_natively import NativeDevice


@pytest.fixture(scope="session", autouse=True)
def _empty_code_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """So that code is compiled, and not found in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("code")))
        yield


@pytest.fixture(scope="module")
def device(request: pytest.FixtureRequest) -> Device:
    """Runs the programs of a module as machine code."""
    return NativeDevice(request.module.PROGRAMS)
