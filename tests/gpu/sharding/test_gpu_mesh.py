"""Meshes of GPUs, in processes of their own: devices that wait for ever end one alone.

`python -m pytest -m mesh` runs these tests, on four GPUs if there are as many, else on two; where
NVLink multicast cannot be used, with NCCL_NVLS_ENABLE=0 in the environment.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from lowering.backends.gpus import count_gpus
from tests.gpu.sharding.mesh_ends import ENDS
from tests.gpu.sharding.mesh_programs import PROGRAMS
from tests.helpers.processes import SECONDS, environment

pytestmark = pytest.mark.mesh


GPUS = 4 if count_gpus() >= 4 else 2


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
    print(ended.stdout)
    done = [name for name in names if f"done {name}" in ended.stdout]
    assert (ended.returncode, tuple(done)) == (0, names), ended.stdout + ended.stderr


PROGRAMS_OF_PROCESSES = (
    ("sums", "extremes", "moves", "places", "profiles", "donations"),
    ("conjugate_gradients", "heat", "training"),
    ("branches", "transforms", "loops_in_one_kernel"),
    ("many_launches", "threads_at_once", "lockstep"),
)


@pytest.mark.parametrize("names", PROGRAMS_OF_PROCESSES)
def test_programs_give_what_the_host_does(names: tuple[str, ...]) -> None:
    assert_done("mesh_programs", "cuda", str(GPUS), names=names)


ENDS_OF_PROCESSES = (
    ("time_limits",),
    ("step_limits", "failing_checks", "interrupts"),
    ("abandons", "driven_by_the_host"),
    ("leaves_a_loop_running",),
)


@pytest.mark.parametrize("names", ENDS_OF_PROCESSES)
def test_all_devices_end(names: tuple[str, ...]) -> None:
    assert_done("mesh_ends", str(GPUS), names=names)


def test_all_programs_run() -> None:
    run = {name for names in (*PROGRAMS_OF_PROCESSES, *ENDS_OF_PROCESSES) for name in names}
    assert run == PROGRAMS.keys() | ENDS.keys()
