"""A process for each of two GPUs: the programs that also run on meshes of the host.

`python -m pytest -m mesh` runs these tests.
"""

from __future__ import annotations

import signal

import pytest

from tests.helpers.processes import Variables, ends_of, torchrun
from tests.programs.of_processes import ON_GPUS

pytestmark = pytest.mark.mesh


@pytest.mark.parametrize("name", sorted(ON_GPUS - {"killed"}))
def test_a_program_of_two_processes(name: str) -> None:
    ends = ends_of("-m", "tests.programs.of_processes", "cuda", name)
    for index, (code, output, problems) in enumerate(ends):
        assert (code, output.splitlines()[-1:]) == (0, [f"done {index} 2"]), problems


def test_others_learn_that_a_process_was_killed() -> None:
    first, second = ends_of("-m", "tests.programs.of_processes", "cuda", "killed")
    assert second[0] == -signal.SIGKILL
    assert (first[0], first[1].splitlines()[-1:]) == (0, ["done 0 2"]), first[2]


def test_across_machines_the_host_drives_loops() -> None:
    """NCCL takes the processes for those of two machines, which a network connects."""

    def on_two_machines(index: int, count: int, job: int) -> Variables:
        return {**torchrun(index, count, job), "NCCL_HOSTID": f"machine{index}"}

    programs = "values", "collectives", "stopped"
    ends = ends_of("-m", "tests.programs.of_processes", "cuda", *programs, launcher=on_two_machines)
    for index, (code, output, problems) in enumerate(ends):
        assert (code, output.splitlines()[-1:]) == (0, [f"done {index} 2"]), problems
