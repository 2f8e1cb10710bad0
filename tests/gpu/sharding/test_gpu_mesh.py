"""Meshes of two GPUs, each program in a process of its own: devices that wait end it alone.

`python -m pytest -m mesh` runs these tests; where NVLink multicast cannot be used, with
NCCL_NVLS_ENABLE=0 in the environment.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.gpu.sharding.mesh_ends import ENDS
from tests.gpu.sharding.mesh_programs import PROGRAMS
from tests.helpers.processes import SECONDS, environment

pytestmark = pytest.mark.mesh


def end_of(*arguments: str, of: str = "mesh_programs") -> tuple[int, str, str]:
    """The exit code, the output and the errors of a program; it is killed if it hangs."""
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.gpu.sharding.{of}", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_the_host_does(name: str) -> None:
    code, output, problems = end_of(name, "cuda")
    assert (code, output.split()[-1:]) == (0, ["done"]), problems


@pytest.mark.parametrize("name", ENDS)
def test_all_devices_end(name: str) -> None:
    code, output, problems = end_of(name, of="mesh_ends")
    assert (code, f"done {name}" in output) == (0, True), output + problems


def test_a_process_with_a_mesh_ends_by_itself() -> None:
    code, output, problems = end_of("heat", "cuda", "--ends-by-itself")
    assert (code, output.split()[-1:]) == (0, ["done"]), problems
