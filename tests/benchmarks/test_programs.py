"""The whole programs of the benchmarks: NumPy and tracegraph agree, and their rows are found."""

import dataclasses
import os

import numpy as np
import pytest

from benchmarks.harness import command
from benchmarks.harness.agreement import within
from benchmarks.harness.caches import VARIABLES, empty_caches
from benchmarks.harness.library import leaves
from benchmarks.harness.measure import Contestant
from benchmarks.harness.outcome import Outcome
from benchmarks.harness.report import means, table
from benchmarks.harness.row import Draw
from benchmarks.programs import PROGRAMS
from benchmarks.rows import GROUPS, OWN_ROWS, ROWS


def results(row, label, inputs):
    return [np.asarray(x) for x in leaves(row.contestants[label](*inputs)())]


def small_calls():
    return [
        row
        for row in (*GROUPS["fft"], *GROUPS["linalg"])
        if "_64_" in row.name or "1000x" in row.name
    ]


@pytest.mark.parametrize("name", [program.name for program in PROGRAMS])
@pytest.mark.parametrize("size", [31, 60])
def test_programs_compute_what_numpy_does(name, size, monkeypatch):
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "host")
    program = next(program for program in PROGRAMS if program.name == name)
    for row in dataclasses.replace(program, sizes=(size,)).rows():
        inputs = row.inputs(Draw.of(row.name, 0, "host", "fixed"))
        wanted = results(row, "numpy", inputs)
        assert row.agrees(results(row, "tracegraph", inputs), wanted) is None
        assert all(np.isfinite(x).all() for x in wanted)
        floats = [x.dtype.name for x in wanted if x.dtype.kind == "f"]
        assert set(floats) == {"float32" if row.name.endswith("f32") else "float64"}


@pytest.mark.parametrize("row", small_calls(), ids=lambda row: row.name)
def test_calls_of_libraries_give_what_numpys_do(row, monkeypatch):
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "host")
    inputs = row.inputs(Draw.of(row.name, 0, "host", "fixed"))
    wanted = results(row, "numpy", inputs)
    assert row.agrees(results(row, "tracegraph", inputs), wanted) is None
    assert [x.dtype.itemsize for x in wanted] == [inputs[0].dtype.itemsize] * len(wanted)


@pytest.mark.parametrize("name", [program.name for program in PROGRAMS])
def test_iterations_end_by_themselves(name):
    row = GROUPS[name][0]
    wanted = results(row, "numpy", row.inputs(Draw.of(row.name, 0, "host", "fixed")))
    counts = [int(x) for x in wanted if x.dtype.kind == "i"]
    assert all(1 < count < 500 for count in counts), "neither at once nor at the limit of steps"


def test_groups_stand_for_their_rows():
    def chosen(*names):
        return [row.name for row in command._parser().parse_args(["--rows", ",".join(names)]).rows]

    assert len(chosen("programs")) == 6 * len(PROGRAMS)
    assert chosen("edit", "edit_60_f32", "cg") == [row.name for row in GROUPS["edit"]] + ["cg"]
    several = ("programs", "large_programs", "transforms", "fft", "linalg", "sorting")
    groups = {*chosen(*several, "callbacks", "processor")}
    assert groups == {*ROWS} - {row.name for row in OWN_ROWS}
    assert command._parser().parse_args([]).rows == OWN_ROWS


@pytest.mark.parametrize(
    ("found", "fine"),
    [
        ([np.float32([1, 1.05]), np.int32(10)], True),
        ([np.float32([1, 1.05]), np.int64(12)], True),
        ([np.float32([1, 1.05]), np.int64(14)], False),
        ([np.float32([1, 1.5]), np.int64(10)], False),
        ([np.float32([1, np.nan]), np.int64(10)], False),
        ([np.float64([1, 1]), np.int64(10)], False),
        ([np.float32([1]), np.int64(10)], False),
    ],
)
def test_agreement_within_tolerances(found, fine):
    agrees = within(0.1, 1e-9, steps=0.2)
    assert (agrees(found, [np.float32([1, 1]), np.int64(10)]) is None) == fine


def outcome(row, milliseconds, first):
    def contestant(label):
        return Contestant(
            label, bool, bool, 1, first=first[label] / 1e3, samples=[milliseconds[label] / 1e3]
        )

    return Outcome.of(row, [], [contestant(label) for label in milliseconds], [], {}, [])


def test_means_are_of_the_rows_that_a_peer_took_part_in():
    one, two, three = GROUPS["edit"][:3]
    first = {"tracegraph": 10, "jax": 40, "cupy": 5}
    outcomes = [
        outcome(one, {"tracegraph": 1, "jax": 2, "cupy": 3}, first),
        outcome(two, {"tracegraph": 1, "jax": 8}, first),
        outcome(three, {"jax": 1}, first),
    ]
    _, *lines = means(outcomes).splitlines()
    assert [line.split() for line in lines] == [["jax", "2", "4", "4"], ["cupy", "1", "3", "0.5"]]
    assert [line.split()[-2:] for line in table(outcomes).splitlines()[1:]] == [
        ["10", "40"],
        ["10", "40"],
        ["-", "40"],
    ]
    assert means(outcomes[2:]) == ""


def test_caches_are_empty_and_then_as_they_were(monkeypatch):
    monkeypatch.setenv(VARIABLES[0], "kept")
    monkeypatch.delenv(VARIABLES[1], raising=False)
    with empty_caches():
        assert all(not os.path.exists(os.environ[variable]) for variable in VARIABLES)
    assert os.environ[VARIABLES[0]] == "kept"
    assert VARIABLES[1] not in os.environ
