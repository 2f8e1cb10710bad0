"""Programs of two processes on meshes of the host, started as launchers do it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.helpers.processes import LAUNCHERS, ends_of
from tests.programs.of_processes import programs_of

JOINING = """
from tracegraph import distributed
distributed.initialize()
print(distributed.process_index(), distributed.process_count())
"""


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_processes_find_one_another_by_variables_of_launchers(launcher: object) -> None:
    ends = ends_of("-c", JOINING, launcher=launcher)
    assert [(code, output) for code, output, _ in ends] == [(0, "0 2\n"), (0, "1 2\n")], ends


def test_programs_of_two_processes() -> None:
    programs = programs_of("host", 2, 2)
    ends = ends_of("-m", "tests.programs.of_processes", "host", "2", *programs)
    for index, (code, output, problems) in enumerate(ends):
        assert (code, output) == (0, f"done {index} 2\n"), problems


def test_an_example_has_the_rows_of_all_processes() -> None:
    path = Path(__file__).parents[3] / "examples" / "principal_component.py"
    (code, output, problems), second = ends_of(str(path))
    assert (code, output.startswith("of 20000 rows: variance")) == (0, True), problems
    assert second[:2] == (0, "")


def test_others_learn_that_a_process_was_killed() -> None:
    first, second = ends_of("-m", "tests.programs.of_processes", "host", "1", "killed")
    assert second[0] == -signal.SIGKILL
    assert first[:2] == (0, "done 0 2\n"), first[2]
