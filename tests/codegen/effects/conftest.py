"""Rings of prints and calls that programs fill many times."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _small_rings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "device" in request.fixturenames:
        monkeypatch.setenv("TRACEGRAPH_PRINT_BUFFER_BYTES", "4000")
        monkeypatch.setenv("TRACEGRAPH_CALLBACK_BUFFER_BYTES", "1")  # the least that there may be
