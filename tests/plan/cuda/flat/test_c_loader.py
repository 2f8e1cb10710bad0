"""The C loader on a fake driver: what it calls, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tracegraph
from lowering.cuda.recipe.flat.flat_file import flat_file
from lowering.cuda.recipe.recipe import Recipe, RecipeKernel
from lowering.cuda.recipe.targets import recipe_of
from tests.plan.cuda.flat.conftest import SOURCES, CProgram
from tests.plan.cuda.flat.recipes import EVERY_KIND, calls_of, code_of
from tracegraph import ArrayType
from tracegraph.__main__ import main


def written(folder: Path, recipe: Recipe = EVERY_KIND, **changes: bytes) -> Path:
    inputs = [f"x{i}" for i in range(len(recipe.inputs))]
    outputs = [f"y{i}" for i in range(len(recipe.outputs))]
    path = folder / "program.tgf"
    path.write_bytes(flat_file(recipe, code_of(recipe) | changes, inputs, outputs))
    return path


def test_the_graph_is_that_of_the_recipe(run_flat: CProgram, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = run_flat(written(tmp_path), 2, log=log)
    assert found.stdout.splitlines() == [
        "program every_kind",
        "argument x0 float32[4,5] 80 bytes",
        "argument x1 int64[] 8 bytes by value",
        "argument x2 float64[8] 64 bytes",
        "result y0 float32[20] 80 bytes",
        "result y1 float64[8] 64 bytes",
        "result y2 bool[0,2] 0 bytes",
    ]
    calls, expected = log.read_text().splitlines(), calls_of(EVERY_KIND)
    assert calls[: len(expected)] == expected
    # an argument that is written over is copied; two kernels hold addresses
    launches = [call.split()[0] for call in calls[len(expected) :]]
    assert launches == 2 * ["copy", "update", "update", "launch", "record"]


def test_addresses_that_stay_are_not_written_again(run_flat: CProgram, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_flat(written(tmp_path), 2, 1, log=log)
    calls = [line.split()[0] for line in log.read_text().splitlines()]
    first, second = ["copy", "update", "update", "launch"], ["copy", "launch"]
    assert calls[-8:] == [*first, "record", *second, "record"]


def test_a_stop_ends_all_earlier_launches_and_no_later_one(
    run_flat: CProgram, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    found = run_flat(written(tmp_path), 2, 2, log=log)
    stopped = "error 9: every_kind was stopped; its results are not whole"
    assert found.stdout.splitlines()[7:] == [stopped, stopped]  # and the last launch is whole
    calls = log.read_text().splitlines()
    orders = ("launch", "record", "flag", "wait")
    cleared = ["wait stream -1", "flag 0 stream -1", "record stream -1"]
    assert [call for call in calls if call.split()[0] in orders] == [
        *("launch stream 1", "record stream 1", "flag 1 stream -1"),
        *(*cleared, "wait stream 2", "launch stream 2", "record stream 2", "flag 1 stream -1"),
        *(*cleared, "wait stream 0", "launch stream 0", "record stream 0"),
    ]


def test_a_failed_check_is_told(run_flat: CProgram, tmp_path: Path) -> None:
    found = run_flat(written(tmp_path), failure=1)
    assert found.stdout.splitlines()[-1] == "error 8: CheckError: x must be positive"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"arch": 89}, "error 5: device 0 is sm_89, the program is for sm_90; write it for that"),
        ({"arch": 100}, "error 5: device 0 is sm_100"),
        ({"version": 12040}, "error 4: the driver is of CUDA 12.4, the program needs one of 12.8"),
    ],
)
def test_other_devices_are_refused(
    run_flat: CProgram, tmp_path: Path, settings: dict[str, int], said: str
) -> None:
    assert run_flat(written(tmp_path), **settings).stdout.startswith(said)


def test_other_files_are_refused(run_flat: CProgram, tmp_path: Path) -> None:
    path = written(tmp_path)
    file = path.read_bytes()

    def said(changed: bytes) -> str:
        path.write_bytes(changed)
        return run_flat(path).stdout

    assert "error 2: the file is damaged: it has 3000 bytes, and was" in said(file[:3000])
    assert "its checksum is another" in said(file[:-1] + b"\1")
    assert "error 3: the file is of version 7" in said(file[:8] + b"\7" + file[9:])
    assert "error 1:" in said(b"")
    assert "error 1:" in run_flat(tmp_path / "none").stdout
    kernels = [node for node in EVERY_KIND.nodes if isinstance(node, RecipeKernel)]
    more = replace(kernels[0], parameters=(*kernels[0].parameters, kernels[0].parameters[0]))
    changed = replace(EVERY_KIND, nodes=(EVERY_KIND.nodes[0], more, *EVERY_KIND.nodes[2:]))
    path = written(tmp_path, changed, **code_of(EVERY_KIND))
    assert "error 2: the file is damaged: load has another parameter 2" in run_flat(path).stdout


def test_changed_files_are_errors(c_program: Callable[..., CProgram], tmp_path: Path) -> None:
    """With sanitizers: 100,000 changes were tried by hand. No object of the driver is left over,
    also where each of its calls fails.
    """
    mutate = c_program(SOURCES / "mutate_flat.c")
    found = mutate(written(tmp_path), 1, 300)
    assert not found.returncode, found.stdout
    statuses, calls = found.stdout.splitlines()
    counts = list(map(int, statuses.split()[1:]))
    assert sum(counts) == 300
    assert counts[0] > 20  # changes that nothing depends on
    assert counts[2] > 100  # damaged
    assert int(calls.split()[1]) > 50


def test_a_function_runs_from_c(
    run_flat: CProgram, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With cubins, by the command: a file with a target, of which no compiler is needed then."""

    def solved(state: dict[str, np.ndarray], rate: float) -> tuple[np.ndarray, np.ndarray]:
        def step(s: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
            return np.sin(s[0]) * rate, s[1] + 1

        x, _ = tracegraph.while_loop(
            lambda s: (s[1] < 9) & (s[0].sum() < 1e3), step, (state["x"], 0), schedule="conditional"
        )
        return x @ state["w"], x

    x, w = ArrayType("float32", (5000,)), ArrayType("float32", (5000, 3))
    exported = tracegraph.export(solved, {"x": x, "w": w}, 0.5)
    exported.add_target("sm_90")
    exported.save(tmp_path / "solved.tg")
    path, log = tmp_path / "solved.tgf", tmp_path / "log"
    assert main(["flatten", str(tmp_path / "solved.tg"), "sm_90", str(path)]) == 0
    found = run_flat(path, 2, log=log)
    assert found.stdout.splitlines() == [
        "program solved",
        "argument state['w'] float32[5000,3] 60000 bytes",
        "argument state['x'] float32[5000] 20000 bytes",
        "argument rate float64[] 8 bytes by value",
        "result result[0] float32[3] 12 bytes",
        "result result[1] float32[5000] 20000 bytes",
    ]
    targets = exported.entries[0].targets
    assert targets is not None
    expected = calls_of(recipe_of(targets.by_arch["sm_90"]))
    building, made = (
        [call for call in calls if not call.startswith("code ")]  # cubins may have more kernels
        for calls in (expected, log.read_text().splitlines())
    )
    assert made[: len(building)] == building
    assert any(" conditional 1 " in call for call in building)

    assert main(["flatten", str(tmp_path / "solved.tg"), "90", str(path)]) == 1
    assert main(["include"]) == 0
    printed = capsys.readouterr()
    assert "'90' is no architecture" in printed.err
    assert Path(printed.out.strip(), "tracegraph_load.h").exists()


def test_libraries_are_refused_or_replaced(run_flat: CProgram, tmp_path: Path) -> None:
    a = ArrayType("float32", (512, 512))
    product = tracegraph.export(lambda a, b: a @ b, a, a)
    path = tmp_path / "program.tgf"
    with pytest.raises(tracegraph.errors.UnsavableError, match="libraries=False computes it"):
        product.save_flat(path, "sm_90")
    assert not path.exists()
    product.save_flat(path, "sm_90", libraries=False)
    assert not run_flat(path).returncode
    transform = tracegraph.export(lambda a: np.fft.fft(a).real, a)
    with pytest.raises(tracegraph.errors.UnsavableError, match="has fft 512 x 512 at test_c_"):
        transform.save_flat(path, "sm_90")
    transform.save_flat(path, "sm_90", libraries=False)
    assert not run_flat(path).returncode
    printed = tracegraph.export(lambda x: tracegraph.debug.print("{}", x), 1.0)
    with pytest.raises(tracegraph.errors.UnsavableError, match=r"prints .* at test_c_loader"):
        printed.save_flat(path, "sm_90")


def test_one_of_several_programs_is_chosen(tmp_path: Path) -> None:
    exported = tracegraph.export(lambda x: 2 * x, signatures=[(1.0,), (np.ones(3),)])
    path = tmp_path / "double.tgf"
    for arch, program, said in [
        ("90", 0, "is no architecture"),
        ("sm_90", None, "has 2 programs"),
        ("sm_90", 2, "no program=2"),
    ]:
        with pytest.raises(ValueError, match=said):
            exported.save_flat(path, arch, program=program)
    exported.save_flat(path, "sm_90", program=1)
    assert b"float64" in path.read_bytes()
