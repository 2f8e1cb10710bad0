"""The benchmark of operands runs, with kernels and products on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import operands
from lowering.testing.recording_backend import RecordingBackend
from tests.emulation.emulated_driver import EmulatedDriver
from tests.emulation.emulator import COMPILER


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_each_form_of_a_product_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = RecordingBackend(EmulatedDriver(tmp_path)).device
    monkeypatch.setattr(operands, "open_device", lambda ordinal: device)
    monkeypatch.setattr(operands, "SHAPES", ((16, 24, 8),))
    monkeypatch.setattr(operands, "TRANSPOSED", {(16, 24, 8)})
    monkeypatch.setattr(operands, "SECONDS", 1e-3)
    operands.main(["float32", "complex64"])
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if re.match(r" *16 +24 +8 (NN|TN|NT|TT) ", line)]
    assert len(rows) == 8
    assert sum("loses least" in line for line in lines) == 2
