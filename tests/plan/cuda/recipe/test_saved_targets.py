"""Files with targets: what they hold, and that loading one plans nothing."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import warnings
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.testing.recorded_objects import RecordedHostMemory
from lowering.testing.recording_backend import RecordingBackend
from tests.emulation.text_code import uncompiled
from tests.helpers.threads import in_threads
from tracegraph import ArrayType, errors
from tracegraph.__main__ import main
from tracegraph.staging.stored_lowering import StoredTraced

__all__ = ["uncompiled"]

pytestmark = pytest.mark.usefixtures("uncompiled")

F32 = ArrayType("float32", (4096,))


def cumulated(x: Any, k: Any) -> dict[str, Any]:
    return {"sums": np.cumsum(x * k), "table": np.sort(x)[:3]}


def exported(**options: Any) -> Any:
    return tracegraph.export(cumulated, F32, 2, targets=("sm_90",), **options)


def test_a_file_brings_targets_along_and_is_the_same_each_time() -> None:
    function = exported(signatures=[(ArrayType("float64", (9,)), 2)])
    data = bytes(function)
    loaded = tracegraph.load(data)
    assert bytes(exported(signatures=[(ArrayType("float64", (9,)), 2)])) == data == bytes(loaded)
    assert {arch: len(sizes) for arch, sizes in loaded.targets.items()} == {"sm_90": 2}
    assert loaded.code == ("target sm_90",)
    assert f"target sm_90: {loaded.targets['sm_90'][0]}" in str(loaded)
    loaded.add_target("sm_100")
    assert [*tracegraph.load(bytes(loaded)).targets] == ["sm_100", "sm_90"]


def test_code_of_who_is_not_trusted_is_refused() -> None:
    with pytest.raises(errors.UntrustedCodeError, match="target sm_90"):
        tracegraph.load(bytes(exported()), trusted=False)


def test_names_of_architectures() -> None:
    with pytest.raises(ValueError, match="'sm_90'"):
        tracegraph.export(cumulated, F32, 2, targets=("hopper",))


def test_calls_run_the_target_and_read_no_program(
    backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    monkeypatch.setattr("tracegraph.ir.stored.reading.program_from_json", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = loaded(np.ones(4096, np.float32), 3)
    assert sorted(found) == ["sums", "table"]
    assert (found["sums"].shape, found["table"].dtype) == ((4096,), np.float32)
    stats = loaded.jitted.stats()
    assert (stats["traces"], stats["builds"], stats["launches"]) == (0, 1, 1)
    launches = backend.device.driver.count("launch")
    loaded(np.ones(4096, np.float32), 3)
    assert backend.device.driver.count("launch") == launches + 1


def test_python_ints_are_checked_as_by_the_program(backend: RecordingBackend) -> None:
    small = ArrayType("int8", (4096,))
    data = bytes(tracegraph.export(lambda x, k: x + k, small, 1, targets=("sm_90",)))
    loaded = tracegraph.load(data, device="cuda")
    with pytest.raises(errors.IntegerRangeError, match="1000"):
        loaded(np.ones(4096, np.int8), 1000)


def test_where_no_target_fits_the_program_is_compiled_with_a_warning(
    backend: RecordingBackend,
) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    backend.device.driver.arch = "sm_100"
    with pytest.warns(errors.FallbackWarning, match="has code for sm_90, and cuda:0 is sm_100"):
        found = loaded(np.ones(4096, np.float32), 3)
    assert sorted(found) == ["sums", "table"]
    assert loaded.jitted.stats()["traces"] == 0
    assert str(loaded.jitted.programs()[0].types[0]) == "f32[4096]"


def test_what_only_a_plan_can_tell_is_told_by_one(backend: RecordingBackend) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    loaded(np.ones(4096, np.float32), 3)
    assert len(loaded.jitted.programs()) == 1
    lowered = loaded.jitted.lower(F32, 2)
    assert lowered.nodes


def test_a_command_adds_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cumulated.tg"
    tracegraph.export(cumulated, F32, 2).save(path)
    assert main(["add-target", str(path), "sm_90"]) == 0
    assert "target sm_90: " in capsys.readouterr().out
    assert [*tracegraph.load(path).targets] == ["sm_90"]
    assert main(["add-target", str(path), "x"]) == 1
    assert "'x' is no architecture" in capsys.readouterr().err


CHILD = """
import sys
import numpy as np
import tracegraph
import lowering.cuda.open_devices as open_devices

loaded = tracegraph.load(sys.argv[1], device="cuda")
from lowering.testing.recording_driver import RecordingDriver

class Device(open_devices.OpenDevice):
    def supports(self, feature, code=None):
        return True

device = Device(RecordingDriver())
open_devices.open_device = lambda ordinal: device
found = loaded(np.ones(4096, np.float32), 3)
assert found["sums"].shape == (4096,), found
unwanted = ("codegen", "planning", "scheduling", "fusion", "legalization", "native", "lower")
calls = [f"plan.calls.{name}" for name in ("fourier", "lapack", "matrix_product", "collectives")]
unwanted += (*calls, *(f"cuda.libraries.{name}" for name in ("library_calls", "cublas", "cufft")))
names = tuple(f"lowering.{name}" for name in (*unwanted, "draft", "allocation", "backends.cuda."))
found = [m for m in sys.modules if f"{m}.".startswith(names) or m == "tracegraph.ops"]
with open("/proc/self/maps") as mapped:
    print(found, "libnvrtc" in mapped.read())
"""


def test_a_process_that_loads_a_target_imports_no_planner_and_no_compiler(tmp_path: Path) -> None:
    path = tmp_path / "cumulated.tg"
    exported().save(path)
    run = [sys.executable, "-c", CHILD, str(path)]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    assert found.stdout == "[] False\n"


def test_no_collection_runs_while_a_target_is_loaded(
    backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    for name in ("lowering.cuda.recipe.targets.recipe_of", "tracegraph.saving.files._targets"):
        original = resolve_name(name)
        monkeypatch.setattr(name, lambda *a, do=original: (seen.append(gc.isenabled()), do(*a))[1])
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    loaded(np.ones(4096, np.float32), 3)
    assert seen == [False, False]
    assert gc.isenabled()


def doubled(x: Any) -> Any:
    return tracegraph.while_loop(lambda c: c.sum() < 1e9, lambda c: np.sort(c) * 2, x, max_steps=10)


def test_failures_that_kernels_report_are_raised(backend: RecordingBackend) -> None:
    data = bytes(tracegraph.export(doubled, F32, targets=("sm_90",)))
    loaded = tracegraph.load(data, device="cuda")
    result = loaded(np.ones(4096, np.float32))
    (mailbox,) = (
        memory
        for memory in backend.device.driver.live_memory
        if isinstance(memory, RecordedHostMemory) and memory.bytes.nbytes == 8
    )
    mailbox.bytes.view(np.int64)[0] = 1
    with pytest.raises(errors.StepLimitError, match="10"):
        np.asarray(result)


def test_each_stream_has_a_graph_and_captures_get_that_of_the_program(
    backend: RecordingBackend,
) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    x, driver = tracegraph.asarray(np.ones(4096, np.float32), device="cuda"), backend.device.driver
    loaded(x, 3)
    before = driver.count("new_graph")
    with tracegraph.stream(CudaStream(77)):
        loaded(x, 3)
    assert driver.count("new_graph") == before + 1
    assert loaded.jitted.stats()["launches"] == 2
    driver.captured_streams.add(78)
    with tracegraph.stream(CudaStream(78)):
        loaded(x, 3)
    assert [node.kind for node in driver.captures[78].nodes] == ["graph"]
    assert driver.relaxed == [0]


class CudaStream:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def test_after_a_reset_the_target_is_loaded_again(backend: RecordingBackend) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    x = np.ones(4096, np.float32)
    loaded(x, 3)
    (cached,) = loaded.jitted._builds.executables.values()
    assert cached.evict()
    loaded(x, 3)
    stats = loaded.jitted.stats()
    assert (stats["traces"], stats["builds"], stats["evictions"]) == (0, 2, 1)


def test_a_closed_executable_compiles_nothing(backend: RecordingBackend) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    loaded(np.ones(4096, np.float32), 3)
    (cached,) = loaded.jitted._builds.executables.values()
    executable = cached.compiled.executable
    assert cached.evict()
    with pytest.raises(errors.ClosedError, match="cumulated"):
        executable.export_graph([])


def test_threads_that_need_the_plan_share_one(
    backend: RecordingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    loaded(np.ones(4096, np.float32), 3)
    (cached,) = loaded.jitted._builds.executables.values()
    executable = cached.compiled.executable
    lower, lowered, found = StoredTraced.lower, list[Any](), list[Any]()

    def slowly(traced: StoredTraced) -> Any:
        time.sleep(0.01)
        lowered.append(lower(traced))
        return lowered[-1]

    monkeypatch.setattr(StoredTraced, "lower", slowly)
    in_threads(4, lambda n: found.append(executable._other if n % 2 else executable.plan))
    assert len(lowered) == 1
    assert len(set(map(id, found))) == 2, "an executable and a plan"


def test_what_the_last_call_did(backend: RecordingBackend) -> None:
    loaded = tracegraph.load(bytes(exported()), device="cuda")
    loaded(np.ones(4096, np.float32), 3)
    call = loaded.jitted.last_call()
    assert call is not None
    assert [each.handling for each in call.operands] == ["copied", "by value"]
    assert backend.device.driver.count("instantiate") == 1
