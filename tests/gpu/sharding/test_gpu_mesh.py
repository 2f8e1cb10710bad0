"""Meshes of two GPUs, in processes of their own: devices that wait for ever end one alone.

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


def assert_done(file: str, *arguments: str, names: tuple[str, ...]) -> None:
    """Programs of a file run to the end of their process; it is killed if it hangs."""
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.gpu.sharding.{file}", *arguments, *names],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    done = [name for name in names if f"done {name}" in ended.stdout]
    assert (ended.returncode, tuple(done)) == (0, names), ended.stdout + ended.stderr


PROGRAMS_OF_PROCESSES = (
    ("sums", "extremes", "moves", "places", "donations"),
    ("conjugate_gradients", "heat", "training"),
    ("branches", "transforms", "loops_in_one_kernel", "many_launches"),
)


@pytest.mark.parametrize("names", PROGRAMS_OF_PROCESSES)
def test_programs_give_what_the_host_does(names: tuple[str, ...]) -> None:
    assert_done("mesh_programs", "cuda", names=names)


ENDS_OF_PROCESSES = (
    ("time_limits",),
    ("step_limits", "failing_checks", "interrupts"),
    ("abandons",),
    ("leaves_a_loop_running",),
)


@pytest.mark.parametrize("names", ENDS_OF_PROCESSES)
def test_all_devices_end(names: tuple[str, ...]) -> None:
    assert_done("mesh_ends", names=names)


def test_all_programs_run() -> None:
    run = {name for names in (*PROGRAMS_OF_PROCESSES, *ENDS_OF_PROCESSES) for name in names}
    assert run == PROGRAMS.keys() | ENDS.keys()
