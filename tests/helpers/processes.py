"""Scripts that run in processes of their own, and how they end.

Several are started as launchers do it: by environment variables.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
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


Variables = Mapping[str, str]


def torchrun(index: int, count: int, job: int) -> Variables:
    """The variables of torchrun."""
    return {
        "RANK": str(index),
        "WORLD_SIZE": str(count),
        "LOCAL_RANK": str(index),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(job),
    }


def mpirun(index: int, count: int, job: int) -> Variables:
    """The variables of Open MPI, on one machine."""
    prefix = "OMPI_COMM_WORLD_"
    return {
        f"{prefix}RANK": str(index),
        f"{prefix}SIZE": str(count),
        f"{prefix}LOCAL_RANK": str(index),
        f"{prefix}LOCAL_SIZE": str(count),
        "PMIX_NAMESPACE": f"prterun-{job}@1",
    }


def hydra(index: int, count: int, job: int) -> Variables:
    """The variables of the mpirun of MPICH, which several machines need an address with."""
    return {
        "PMI_RANK": str(index),
        "PMI_SIZE": str(count),
        "MPI_LOCALRANKID": str(index),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(job),
    }


def srun(index: int, count: int, job: int) -> Variables:
    """The variables of Slurm, on one machine."""
    return {
        "SLURM_PROCID": str(index),
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_LOCALID": str(index),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_JOB_ID": str(job),
        "SLURM_STEP_ID": "0",
    }


LAUNCHERS: Sequence[Callable[[int, int, int], Variables]] = (torchrun, mpirun, hydra, srun)

_JOBS, _numbers = os.getpid() * 16 % 60_000, itertools.count()
"""Numbers of jobs, which ports are derived from: those of another process of tests are far away."""

End = tuple[int, str, str]
"""The exit code, the output and the errors of a process."""


def ends_of(
    *arguments: str, launcher: Callable[..., Variables] = torchrun, count: int = 2
) -> list[End]:
    """How the processes of Python with these arguments end; all are killed if they do not."""
    job = _JOBS + next(_numbers)
    started = [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**environment(TRACEGRAPH_HOST="plain"), **launcher(index, count, job)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(count)
    ]
    try:
        texts = [each.communicate(timeout=SECONDS) for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()
    return [(each.returncode, *text) for each, text in zip(started, texts, strict=True)]
