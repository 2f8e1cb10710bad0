from __future__ import annotations

import importlib

import pytest

from tests.fakes.fake_device import FakeCompiler
from tracegraph import devices


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    """Programs are interpreted, on the host by default, or on a device such as "fake:0"."""
    fake = FakeCompiler()
    replaced = {"compiler": lambda: fake, "default_device": lambda: "host"}
    staging = ("staging.compiler", "staging.calls.call_tracing", "staging.jitted")
    for name in (*staging, "memory", "streams"):
        module = importlib.import_module(f"tracegraph.{name}")
        for function in replaced.keys() & vars(module).keys():
            monkeypatch.setattr(module, function, replaced[function])
    known = dict.fromkeys(["fake", *devices.other_backends()])
    monkeypatch.setattr(devices, "other_backends", lambda: known)
    return fake
