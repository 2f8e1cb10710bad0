"""Several processes that share the GPUs: the programs that also run on meshes of the host.

`python -m pytest -m mesh` runs these tests.
"""

from __future__ import annotations

import signal

import pytest

from tests.gpu.sharding.test_gpu_mesh import GPUS
from tests.helpers.processes import Variables, ends_of, torchrun
from tests.programs.of_processes import KILLED, programs_of

pytestmark = pytest.mark.mesh

LAYOUTS = sorted({(GPUS, 1), (2, GPUS // 2)})
"""Numbers of processes, and of the GPUs of each."""


@pytest.mark.parametrize(("count", "each"), LAYOUTS)
def test_programs_of_processes(count: int, each: int) -> None:
    def with_own_gpus(index: int, count: int, job: int) -> Variables:
        seen = ",".join(str(index * each + i) for i in range(each))
        own = {"CUDA_VISIBLE_DEVICES": seen} if each > 1 else {}
        return {**torchrun(index, count, job), **own}

    programs = programs_of("cuda", count, each)
    ends = ends_of(
        *("-m", "tests.programs.of_processes", "cuda", str(each), *programs),
        launcher=with_own_gpus,
        count=count,
    )
    for index, (code, output, problems) in enumerate(ends):
        assert (code, output.splitlines()[-1:]) == (0, [f"done {index} {count}"]), problems


@pytest.mark.parametrize("name", sorted(KILLED))
@pytest.mark.parametrize(("count", "each"), LAYOUTS)
def test_others_learn_that_a_process_was_killed(count: int, each: int, name: str) -> None:
    ends = ends_of("-m", "tests.programs.of_processes", "cuda", str(each), name, count=count)
    for index, (code, output, problems) in enumerate(ends):
        if index == 1:
            assert code == -signal.SIGKILL
        else:
            done = 0, [f"done {index} {count}"]
            assert (code, output.splitlines()[-1:]) == done, problems


def test_across_machines_the_host_drives_loops() -> None:
    """NCCL takes the processes for those of two machines, which a network connects."""

    def on_two_machines(index: int, count: int, job: int) -> Variables:
        return {**torchrun(index, count, job), "NCCL_HOSTID": f"machine{index}"}

    programs = "values", "stopped"
    ends = ends_of(
        *("-m", "tests.programs.of_processes", "cuda", str(GPUS // 2), *programs),
        launcher=on_two_machines,
    )
    for index, (code, output, problems) in enumerate(ends):
        assert (code, output.splitlines()[-1:]) == (0, [f"done {index} 2"]), problems
