"""The benchmarks run and keep a record; nothing here depends on how long anything takes."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import tracegraph
from benchmarks import kernel_work
from benchmarks.grouping import Comparison, passes
from benchmarks.harness import command
from benchmarks.harness.agreement import close
from benchmarks.harness.elsewhere import Elsewhere
from benchmarks.harness.library import Library
from benchmarks.harness.limits import LIMITS
from benchmarks.harness.measure import Contestant, contest
from benchmarks.harness.outcome import Outcome
from benchmarks.harness.play import play
from benchmarks.harness.report import block, table
from benchmarks.harness.row import GIGABYTES, MICROSECONDS, Draw
from benchmarks.programs import control_programs
from benchmarks.rows import ROWS
from benchmarks.rows.hand_loops import HAND_LOOPS
from lowering.codegen import WorkspaceAddress, unit_source


def run(root, *arguments):
    command = [sys.executable, "-m", "benchmarks", "--device", "host", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


@pytest.fixture(scope="module")
def finished(pytestconfig, tmp_path_factory):
    """A run of two small rows, and its record."""
    file = tmp_path_factory.mktemp("bench") / "record.json"
    options = ("--peers", "numpy", "--shapes", "random", "--seed", "7", "--seconds", "0.01")
    done = run(pytestconfig.rootpath, "--rows", "while_1ki,plan_10", *options, "--json", str(file))
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout, json.loads(file.read_text())


def test_record_says_how_it_was_made(finished):
    _, record = finished
    assert record.keys() >= {"date", "commit", "processor", "cores", "system", "python"}
    assert record["versions"].keys() == {"tracegraph", "numpy"}
    assert (record["device"], record["shapes"], record["seed"]) == ("host", "random", 7)
    assert [row["name"] for row in record["rows"]] == ["while_1ki", "plan_10"]


def test_record_has_figures_and_ratios(finished):
    _, record = finished
    loop, plan = record["rows"]
    assert loop["contestants"].keys() == {"tracegraph", "numpy"}
    for figure in loop["contestants"].values():
        assert 0 < figure["low"] <= figure["median"] <= figure["high"]
        assert figure["samples"] >= 1
        assert figure["first_run_ms"] > 0
    ours, theirs = (loop["contestants"][name]["median"] for name in ("tracegraph", "numpy"))
    assert loop["best_peer"] == "numpy"
    assert loop["times_best_peer"] == pytest.approx(theirs / ours)
    assert (loop["unit"], loop["limits"], loop["failures"]) == ("µs/iteration", {}, {})
    assert plan["best_peer"] is None


def test_text_ends_with_a_line_for_each_row_and_for_each_peer(finished):
    text, _ = finished
    *_, lines, means = text.rstrip().split("\n\n")
    header, *lines = lines.splitlines()
    assert header.split()[:3] == ["row", "unit", "tracegraph"]
    assert [line.split()[0] for line in lines] == ["while_1ki", "plan_10"]
    assert [line.split()[:2] for line in means.splitlines()[1:]] == [["numpy", "1"]]


@pytest.mark.parametrize(("option", "name"), [("--rows", "row"), ("--peers", "library")])
def test_unknown_names_are_told(pytestconfig, option, name):
    done = run(pytestconfig.rootpath, option, "nonsense")
    assert done.returncode == 2
    assert f"no {name} 'nonsense'" in done.stderr


def test_inputs_are_those_of_the_seed():
    for shapes in ("fixed", "random"):
        first, again, other = (
            ROWS["call"].inputs(Draw.of("call", seed, "host", shapes)) for seed in (1, 1, 2)
        )
        assert all(map(np.array_equal, first, again))
        assert not np.array_equal(first[0], other[0])
    assert first[0].size % 2 == 1, "random sizes are odd"


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (np.float32([1, 2]), None),
        (np.float32([1, 2.0001]), None),
        (np.float32([1, 2.01]), "largest element"),
        (np.float32([1, np.nan]), "largest element"),
        (np.float64([1, 2]), "dtype"),
        (np.float32([1, 2, 3]), "shape"),
    ],
)
def test_agreement(found, difference):
    told = close([found], [np.float32([1, 2])])
    assert (told is None) == (difference is None)
    assert difference is None or difference in told


def test_integers_agree_in_any_width_but_only_if_equal():
    assert close([np.int32([3])], [np.int64(3)]) is None
    assert "other elements" in close([np.int64([4])], [np.int64([3])])


def test_limits_of_rows_are_known():
    for row in ROWS.values():
        assert {*row.limits} <= {*LIMITS, *HAND_LOOPS}


def test_units():
    assert MICROSECONDS.figure(2e-3, 1000) == pytest.approx(2)
    assert GIGABYTES.figure(0.5, 1e9) == pytest.approx(2)
    assert MICROSECONDS.advantage(2, 6) == 3
    assert GIGABYTES.advantage(6, 2) == 3


def test_contestants_take_turns():
    calls = []

    def contestant(name):
        return Contestant(name, lambda: calls.append(name), lambda _: None, 1)

    contestants = [contestant(name) for name in "ab"]
    paces = contest(contestants, seconds=0.01, waits=True)
    assert len(paces) >= 2, "one for each turn"
    assert all(c.samples for c in contestants)
    changes = sum(before != after for before, after in pairwise(calls))
    assert changes >= 3


def test_one_that_fails_does_not_stop_the_others():
    def fail():
        raise RuntimeError("out of luck")

    failing = Contestant("a", fail, id, 1)
    other = Contestant("b", lambda: None, id, 1)
    contest([failing, other], seconds=0.01, waits=True)
    assert str(failing.error) == "out of luck"
    assert not failing.samples
    assert other.samples


def test_best_peer_and_limit():
    def timed(label, seconds):
        return Contestant(label, id, id, 1e9, 0.0, [seconds] * 3)

    contestants = [timed("tracegraph", 2.0), timed("jax", 4.0), timed("torch graph", 1.0)]
    limits = [timed("limit: slow", 0.8), timed("limit: copy", 0.5)]
    outcome = Outcome.of(
        ROWS["sine"], ["f32[8]"], contestants, limits, {"cupy": "ImportError"}, [3e-8]
    )
    assert outcome.best_peer == "torch graph"
    assert outcome.against_peer == pytest.approx(0.5)
    assert outcome.best_limit == "limit: copy"
    assert outcome.against_limit == pytest.approx(0.25)
    assert "left out: ImportError" in block(outcome)
    assert outcome.pace.median == pytest.approx(30)
    assert outcome.record()["python_call_ns"]["samples"] == 1
    assert table([outcome]).splitlines()[1].split()[:4] == ["sine", "GB/s", "0.5", "1"]


def test_a_run_without_tracegraph_fails(monkeypatch):
    def broken(device):
        raise RuntimeError("out of luck")

    monkeypatch.setitem(command.OPENERS, "tracegraph", broken)
    with pytest.raises(SystemExit, match=r"tracegraph cannot be opened.*out of luck"):
        command.main(["--device", "host", "--peers", "numpy", "--rows", "cond"])


def played(**contestants):
    """The outcome of a row with these contestants, each a function of the number of its run."""

    def prepare(result):
        def prepared(x):
            runs = iter(range(1 << 30))
            return lambda: np.float32([result(next(runs))])

        return prepared

    row = replace(
        ROWS["cond"],
        limits=(),
        contestants={label: prepare(result) for label, result in contestants.items()},
    )
    libraries = {label: Library(label, "", np.asarray, id) for label in contestants}
    return play(row, Draw.of("cond", 1, "host", "fixed"), libraries, "host", 0.01)


def test_results_that_become_wrong_while_timed_are_noticed():
    outcome = played(tracegraph=lambda run: min(run, 1), numpy=lambda run: 0)
    assert outcome.figures.keys() == {"numpy"}
    assert "after timing" in outcome.failures["tracegraph"]


def test_without_numpy_results_are_compared_with_a_peers():
    outcome = played(tracegraph=lambda run: 1, jax=lambda run: 2, torch=lambda run: 2)
    assert outcome.figures.keys() == {"jax", "torch"}
    assert "largest element" in outcome.failures["tracegraph"]


def test_the_first_call_gives_the_same_whatever_its_constant():
    row = ROWS["first_call"]
    x, threshold = row.inputs(Draw.of("first_call", 1, "host", "random"))
    run = row.contestants["tracegraph"](x, threshold)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(run()), x / 1024)


@pytest.mark.parametrize(
    ("ratios", "fine"),
    [
        ([(1.0,), (1.2,), (0.95,)], True),
        ([(1.0,), (1.2,), (0.8, 0.8, 1.0)], True),
        ([(1.0,), (1.2,), (0.8, 0.8, 0.8, 0.85)], False),
        ([(0.95,), (0.98,), (1.3,)], False),
    ],
)
def test_fusing_must_pay_and_slow_nothing_down(ratios, fine):
    assert passes([Comparison("", each) for each in ratios]) is fine


@pytest.mark.parametrize("kind", control_programs.KINDS)
def test_constructs_of_random_programs_run(kind):
    program = [
        replace(construct, kind=kind) for construct in control_programs.constructs(4, seed=1)
    ]
    x, y = np.linspace(0, 1, 5, dtype=np.float32), np.ones(5, np.float32)
    run = tracegraph.jit(control_programs.function(np, tracegraph, program), device="host")
    result = np.asarray(run(x, y))
    assert result.shape == (5,)
    assert np.isfinite(result).all()


@pytest.mark.parametrize(
    "make", [kernel_work.row_sums, kernel_work.layer_norm, kernel_work.standardise]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_planned_kernels_take_memory_that_is_known(make, dtype):
    work = make(dtype, 64, 96)
    known = {*work.buffers, *work.plan.offsets}
    unit = unit_source(work.plan)
    for node in work.plan.graph.nodes:
        for parameter in unit.kernels[node].parameters:
            assert isinstance(parameter, WorkspaceAddress) or parameter in known
    assert work.buffers[-1].space == "output"
    assert work.nbytes >= 64 * 96 * np.dtype(dtype).itemsize


@pytest.fixture
def process():
    elsewhere = Elsewhere("numpy", "host", {})
    yield elsewhere
    elsewhere.close()


def test_a_library_in_another_process_takes_turns(process):
    libraries = {
        "tracegraph": Library("tracegraph", "", np.asarray, id),
        "other": Library("other", process.version, id, id, elsewhere=process),
    }
    row, draw = ROWS["cond"], Draw.of("cond", 1, "host", "fixed")
    outcome = play(row, draw, libraries, "host", 0.05)
    assert outcome.figures.keys() == {"tracegraph", "other"}, outcome.failures
    assert outcome.best_peer == "other"
    assert outcome.figures["other"].samples > 1


def test_another_process_tells_what_failed(process):
    with pytest.raises(RuntimeError, match="KeyError"):
        process.ask("prepare", "no such row", ())
    assert process.ask("prepare", "cond", (np.ones(3, np.float32),))[1][0].shape == (3,)
    process.close()
    with pytest.raises(RuntimeError, match="ended"):
        process.ask("run")


def test_a_library_that_another_process_cannot_open():
    with pytest.raises(RuntimeError, match="GPUs"):
        Elsewhere("cupy", "host", {})
