"""Who is who: by arguments, by mpi4py, and by the variables of launchers."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers.processes import LAUNCHERS
from tracegraph import errors
from tracegraph.distributed.launchers import ProcessPlace, placed, process_place


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {})


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_all_processes_know_one_address(launcher: Any) -> None:
    first, second = (process_place(launcher(index, 2, 77)) for index in range(2))
    assert (first.index, first.count, first.local_index) == (0, 2, 0)
    assert (second.index, second.count, second.local_index) == (1, 2, 1)
    assert first.address == second.address
    assert 61_000 <= first.address[1] < 65_536
    assert process_place(launcher(0, 2, 78)).address != first.address


def test_a_process_is_alone_without_variables() -> None:
    assert process_place({}) is None
    assert placed(None, None, None, None) == (ProcessPlace("alone", 0, 1, 0, None), None)
    in_a_batch_script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
    assert process_place(in_a_batch_script) is None


def test_open_mpi_on_several_machines_needs_an_address() -> None:
    variables = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert process_place(variables).address is None
    named = {**variables, "MASTER_ADDR": "first", "MASTER_PORT": "5"}
    assert process_place(named).address == ("first", 61_005)


def test_arguments_come_before_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", dict(LAUNCHERS[0](1, 2, 77)))
    found, _ = placed("10.0.0.1:5000", 4, 3, None)
    assert found == ProcessPlace("arguments", 3, 4, 1, ("10.0.0.1", 5000))
    found, _ = placed("10.0.0.1:5000", None, None, None)
    assert found == ProcessPlace("torchrun", 1, 2, 1, ("10.0.0.1", 5000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, 2, None, None), "give both num_processes and process_id"),
        ((None, 2, 2, None), "numbers from 0 to 1; got 2"),
        (("somewhere", 2, 1, None), "coordinator_address is 'host:port', not 'somewhere'"),
        (("a:1", None, None, None), "give num_processes and process_id"),
        ((None, None, None, lambda x: x), "give num_processes and process_id"),
    ],
)
def test_arguments_that_do_not_tell(arguments: Any, message: str) -> None:
    with pytest.raises(errors.ProcessGroupError, match=message):
        placed(*arguments)


def test_mpi4py_tells_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[bool] = []
    machine = SimpleNamespace(Get_rank=lambda: 1, Free=lambda: freed.append(True))
    world = SimpleNamespace(
        Get_rank=lambda: 3, Get_size=lambda: 4, Split_type=lambda kind: machine, bcast=lambda x: x
    )
    mpi = SimpleNamespace(COMM_WORLD=world, COMM_TYPE_SHARED=0, Is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
    assert placed(None, None, None, None) == (ProcessPlace("mpi4py", 3, 4, 1, None), world.bcast)
    assert freed
