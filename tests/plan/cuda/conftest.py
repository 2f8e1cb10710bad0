"""What tests of calls share: a recorded GPU."""

from __future__ import annotations

import pytest

import lowering
from lowering.testing.recording_backend import RecordingBackend


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> RecordingBackend:
    """Functions for "cuda" run on it."""
    recording = RecordingBackend()
    monkeypatch.setattr(lowering, "backend", lambda device: recording)
    return recording
