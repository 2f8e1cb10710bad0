"""What the figures were measured on."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import Any


def describe(device: str) -> dict[str, Any]:
    """The machine, the moment and the source's state, for the record of a run."""
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _output("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    if device == "cuda":
        found |= _gpu()
    return found


def _gpu() -> dict[str, Any]:
    from cuda.core import Device

    fields = "name,driver_version,clocks.sm,clocks.mem,power.limit"
    told = _output("nvidia-smi", "-i", "0", f"--query-gpu={fields}", "--format=csv,noheader")
    return {
        "gpu": Device(0).name,
        "nvidia-smi": told and dict(zip(fields.split(","), told.split(", "), strict=False)),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _output(*command: str) -> str | None:
    """What a command prints, or None where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
