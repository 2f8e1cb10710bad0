"""Scripts that run in a process of their own, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tracegraph

SECONDS = 120


def environment(**others: str) -> dict[str, str]:
    """That of this process, with this tracegraph to import, and other variables."""
    root = str(Path(tracegraph.__file__).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **others}


def end_of(script: str, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of a script; `variables` are of its environment."""
    ended = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr
