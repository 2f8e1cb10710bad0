from __future__ import annotations

import importlib

import pytest
from fake_device import FakeCompiler


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    """Programs are interpreted, on the host by default, or on a device such as "fake:0"."""
    fake = FakeCompiler()
    for name in ("staging.compiler", "staging.jitted", "memory", "streams"):
        module = importlib.import_module(f"tracegraph.{name}")
        monkeypatch.setattr(module, "compiler", lambda: fake)
        monkeypatch.setattr(module, "default_device", lambda: "host")
    return fake
