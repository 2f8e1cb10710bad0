"""Who is who among processes, by the environment variables of launchers.

    torchrun                RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
    mpirun of Open MPI      OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
    srun                    SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_STEP_NODELIST
    mpirun of MPICH, Intel  PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS

The first process listens at a port that is derived from that of torchrun, or from the number of the
job: others of the same job may listen at the port itself. It is in a range from which systems give
none away by themselves.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tracegraph.errors import ProcessGroupError
from tracegraph.errors.keywords import required_int
from tracegraph.errors.wording import value_text
from tracegraph.generated.dataclass import dataclass

_FIRST_PORT, _PORTS = 61_000, 4_535
"""The ports above those that Linux gives to whoever asks for any."""

Variables = Mapping[str, str]

Broadcast = Callable[[Any], Any]
"""What all processes call, each with a value, and that returns the value of the first one to all,
as `comm.bcast` of mpi4py does.
"""


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """A process: its number, how many there are, and its number on its machine.

    `address` is where the first process listens; None if that is not known. `launcher` is the name
    of what started it.
    """

    launcher: str
    index: int
    count: int
    local_index: int
    address: tuple[str, int] | None


def placed(
    address: str | None, count: int | None, index: int | None, broadcast: Broadcast | None
) -> tuple[ProcessPlace, Broadcast | None]:
    """The process, by the arguments of `initialize`, and by its launcher where they are missing.

    Raises:
        TypeError: an argument is of another type.
        ProcessGroupError: numbers are missing, or are none of processes.
    """
    if address is not None and not isinstance(address, str):
        raise TypeError(f"coordinator_address must be 'host:port', not {value_text(address)}")
    if broadcast is not None and not callable(broadcast):
        raise TypeError(f"broadcast must be a function, not {value_text(broadcast)}")
    if count is not None:
        count = required_int("num_processes", count, "a number of processes")
    if index is not None:
        index = required_int("process_id", index, "the number of a process")
    found = process_place(os.environ)
    if (count is None) != (index is None):
        raise ProcessGroupError("give both num_processes and process_id, or neither of them")
    if count is not None and index is not None:
        local, known = (found.local_index, found.address) if found else (index, None)
        found = ProcessPlace("arguments", index, count, local, known)
    elif broadcast is None and address is None:
        found, broadcast = _by_mpi4py(found)
    if found is None:
        if broadcast is not None or address is not None:
            raise ProcessGroupError(
                "no launcher has said by environment variables which process this is: give "
                "num_processes and process_id"
            )
        found = ProcessPlace("alone", 0, 1, 0, None)
    if found.count < 1:
        raise ProcessGroupError(f"there is at least 1 process, got {found.count}")
    if not 0 <= found.index < found.count:
        raise ProcessGroupError(
            f"{found.count} processes have numbers from 0 to {found.count - 1}; got {found.index}"
        )
    if address is not None:
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal():
            raise ProcessGroupError(f"coordinator_address is 'host:port', not {address!r}")
        found = replace(found, address=(host, int(port)))
    return found, broadcast


def _by_mpi4py(found: ProcessPlace | None) -> tuple[ProcessPlace | None, Broadcast | None]:
    """As MPI says it, if mpi4py has been imported and has more than one process."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.COMM_WORLD.Get_size() == 1:
        return found, None
    world = mpi.COMM_WORLD
    machine = world.Split_type(mpi.COMM_TYPE_SHARED)
    local = machine.Get_rank()
    machine.Free()
    return ProcessPlace("mpi4py", world.Get_rank(), world.Get_size(), local, None), world.bcast


def process_place(variables: Variables) -> ProcessPlace | None:
    """What the variables say of a process; None if no launcher has set any.

    >>> torchrun = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1",
    ...             "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    >>> process_place(torchrun)
    ProcessPlace(launcher='torchrun', index=1, count=2, local_index=1, address=('localhost', 63290))
    """
    for launcher in (_torchrun, _open_mpi, _slurm, _hydra):
        found = launcher(variables)
        if found is not None:
            return found
    return None


def _torchrun(variables: Variables) -> ProcessPlace | None:
    if not {"RANK", "WORLD_SIZE"} <= variables.keys():
        return None
    local = variables.get("LOCAL_RANK", "0")
    return _placement("torchrun", variables, "RANK", "WORLD_SIZE", local, _master(variables))


def _open_mpi(variables: Variables) -> ProcessPlace | None:
    prefix = "OMPI_COMM_WORLD_"
    if not {f"{prefix}RANK", f"{prefix}SIZE"} <= variables.keys():
        return None
    local = variables.get(f"{prefix}LOCAL_RANK", "0")
    job = variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid", "")
    on_one = variables.get(f"{prefix}LOCAL_SIZE") == variables[f"{prefix}SIZE"]
    address = _master(variables) or _on_this_machine(on_one, job)
    return _placement("mpirun", variables, f"{prefix}RANK", f"{prefix}SIZE", local, address)


def _slurm(variables: Variables) -> ProcessPlace | None:
    # a batch script itself has SLURM_PROCID, but is no step
    if not {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"} <= variables.keys():
        return None
    nodes = variables.get("SLURM_STEP_NODELIST", "")
    job = variables.get("SLURM_JOB_ID", "") + "." + variables.get("SLURM_STEP_ID", "")
    address = _master(variables) or ((first_node(nodes), _port(job)) if nodes else None)
    local = variables.get("SLURM_LOCALID", "0")
    return _placement("srun", variables, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", local, address)


def _hydra(variables: Variables) -> ProcessPlace | None:
    if not {"PMI_RANK", "PMI_SIZE"} <= variables.keys():
        return None
    on_one = variables.get("MPI_LOCALNRANKS") == variables["PMI_SIZE"]
    job = variables.get("PMI_ID", "") and variables.get("HYDI_CONTROL_FD", "")
    address = _master(variables) or _on_this_machine(on_one, job)
    local = variables.get("MPI_LOCALRANKID", "0")
    return _placement("mpirun", variables, "PMI_RANK", "PMI_SIZE", local, address)


def _placement(
    launcher: str,
    variables: Variables,
    index: str,
    count: str,
    local: str,
    address: tuple[str, int] | None,
) -> ProcessPlace:
    try:
        numbers = int(variables[index]), int(variables[count]), int(local)
    except ValueError as error:
        raise ProcessGroupError(
            f"the environment has {index}={variables[index]!r} and {count}={variables[count]!r}, "
            f"as {launcher} sets them, but they are no numbers"
        ) from error
    return ProcessPlace(launcher, *numbers, address)


def _master(variables: Variables) -> tuple[str, int] | None:
    """By the variables that name the machine of the first process."""
    host, port = variables.get("MASTER_ADDR"), variables.get("MASTER_PORT", "")
    return (host, _port(port)) if host else None


def _on_this_machine(all_are: bool, job: str) -> tuple[str, int] | None:
    return ("127.0.0.1", _port(job)) if all_are else None


def _port(job: str) -> int:
    """A port for a job, by its number or name."""
    number = int(job) if job.isdecimal() else zlib.crc32(job.encode())
    return _FIRST_PORT + number % _PORTS


_NODE: Callable[[str], re.Match[str] | None] = re.compile(
    r"(?P<prefix>[^\[,]+)(\[(?P<number>[^\],-]+)[^\]]*\])?(?P<suffix>[^\[,]*)"
).match


def first_node(nodes: str) -> str:
    """The first machine of a list as Slurm writes it.

    >>> first_node("gpu[07-09,12],cpu1"), first_node("login1,login2")
    ('gpu07', 'login1')
    """
    found = _NODE(nodes)
    assert found is not None, nodes
    return found["prefix"] + (found["number"] or "") + found["suffix"]
