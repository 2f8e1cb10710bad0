"""The benchmark of operands of transforms runs, with transforms on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lowering
from benchmarks import fourier_operands
from lowering.testing.recording_backend import RecordingBackend
from tests.emulation.emulated_driver import EmulatedDriver
from tests.emulation.emulator import COMPILER


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_each_form_of_a_transform_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = RecordingBackend(EmulatedDriver(tmp_path))
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    monkeypatch.setattr(fourier_operands, "SIDES", (8,))
    monkeypatch.setattr(fourier_operands, "SECONDS", 1e-3)
    fourier_operands.main(["2", "1"])
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if re.match(r" +8 +1 ( +[\d.]+ +[\d.]+){3}  copied", line)]
    assert len(rows) == 2
