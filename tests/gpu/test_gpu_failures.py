"""Whatever driver call fails in a build, nothing is left behind, and the next build works."""

import gc
import subprocess
import sys
from functools import wraps

import numpy as np
import pytest

import tracegraph
from tracegraph import cond, fori_loop

TABLE = np.random.default_rng(3).integers(0, 3, (64, 64)).astype(float)
X = np.eye(64)

ENDS = {"cuStreamEndCapture"}
"""What a driver does though it reports a failure."""

STEPS = (
    "allocate",
    "allocate_host",
    "clear",
    "copy_to_device",
    "record",
    "synchronize",
    "load",
    "kernel",
    "launch_kernel",
    "new_graph",
    "create_condition",
    "add_kernel",
    "add_memory",
    "add_free",
    "add_conditional",
    "capture",
    "library",
    "synchronize_capture_stream",
    "tie",
    "instantiate",
    "updater",
    "launcher",
)
"""What is asked of `CudaDriver` in a build; some of it calls the driver by cuda.core."""


class InjectedError(RuntimeError):
    """The failure that was asked for."""


class Failing:
    """Counts the steps of a driver and its calls, and lets one of them fail."""

    def __init__(self, patch):
        from lowering.driver import device, graphs, user_objects

        self.made, self.fail_at = [], 0
        for module in (device, graphs, user_objects):
            patch.setattr(module, "driver", Calls(self, module.driver))
        for name in STEPS:
            patch.setattr(device.CudaDriver, name, self.step(getattr(device.CudaDriver, name)))

    def fails(self, name):
        self.made.append(name)
        return len(self.made) == self.fail_at

    def step(self, function):
        @wraps(function)
        def called(*args, **kwargs):
            if self.fails(function.__name__):
                raise InjectedError(function.__name__)
            return function(*args, **kwargs)

        return called

    def build(self, scratch, fail_at=0):
        self.made, self.fail_at = [], fail_at
        return tracegraph.jit(program, device="cuda", scratch=scratch).lower(X, 3).compile()


class Calls:
    """The functions of cuda.bindings, of which one may say that it failed."""

    def __init__(self, failing, real):
        self._failing, self._real = failing, real

    def __getattr__(self, name):
        found = getattr(self._real, name)
        if not name.startswith("cu"):
            return found

        @wraps(found)
        def called(*args):
            if not self._failing.fails(name):
                return found(*args)
            if name in ENDS:
                found(*args)
            return (self._real.CUresult.CUDA_ERROR_UNKNOWN,)

        return called


def program(x, n):
    y = fori_loop(0, n, lambda i, y: (y @ TABLE) % 7 + x, x, schedule="conditional")
    return cond(n > 2, lambda y: y + TABLE, lambda y: -y, y, schedule="conditional")


def expected():
    y = X
    for _ in range(3):
        y = (y @ TABLE) % 7 + X
    return y + TABLE


@pytest.fixture
def failing(monkeypatch):
    tracegraph.reset()
    with monkeypatch.context() as patch:
        yield Failing(patch)


def held():
    """What is held of the device: bytes by purpose, owners tied to graphs, executables."""
    from lowering.cuda.device import open_device

    gc.collect()
    device = open_device(0)
    device.timeline.settle()
    tracegraph.memory_stats()  # lets go of what nobody has any more
    owners = len(device.driver._user_objects._owners)
    return dict(device.heap.holdings.held), owners, len(device.heap.executables)


def is_capturing():
    from cuda.bindings import driver  # noqa: TID251 - asks, and changes nothing

    from lowering.cuda.device import open_device

    found, status = driver.cuStreamIsCapturing(open_device(0).driver._capture_stream.handle)
    assert found == driver.CUresult.CUDA_SUCCESS
    return status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


@pytest.mark.parametrize("scratch", ["kept", "per_launch"])
def test_a_build_that_fails_at_any_call_of_the_driver_leaves_nothing(failing, scratch):
    compiled = failing.build(scratch)
    np.testing.assert_array_equal(np.asarray(compiled(X, 3)), expected())
    before = held()
    other = failing.build(scratch)
    again = list(failing.made)
    del other
    assert {"cuGraphAddKernelNode", "cuGraphInstantiate", "cuGraphRetainUserObject"} <= {*again}
    assert {"add_conditional", "cuStreamBeginCaptureToGraph", "cuStreamEndCapture"} <= {*again}
    assert held() == before
    for number, name in enumerate(again, 1):
        with pytest.raises(RuntimeError, match=rf"^{name}|{name} failed with"):
            failing.build(scratch, fail_at=number)
        assert not is_capturing(), name
        assert held() == before, name
    assert ("cuGraphAddMemFreeNode" in again) == (scratch == "per_launch")
    np.testing.assert_array_equal(np.asarray(failing.build(scratch)(X, 3)), expected())
    np.testing.assert_array_equal(np.asarray(compiled(X, 3)), expected())


LOST = """
import numpy as np
import tracegraph


class Claimed:
    \"\"\"Four elements that say they are 64 gigabytes.\"\"\"

    def __init__(self):
        self.memory = tracegraph.asarray(np.zeros(4, np.float32), device="cuda")
        self.__cuda_array_interface__ = {
            **self.memory.__cuda_array_interface__, "shape": (1 << 34,)
        }


total = tracegraph.jit(FUNCTION, device="cuda")
result = total(Claimed())
told = []
for wait in (
    result.synchronize,
    lambda: np.asarray(result),
    lambda: total(np.ones(1 << 10, np.float32)),
):
    try:
        wait()
    except tracegraph.errors.DeviceLostError as error:
        told.append(error.reason)
print(told)
"""

SUM = "lambda x: x.sum()"
SUM_IN_A_LOOP = """lambda x: tracegraph.while_loop(
    lambda y: y < 3, lambda y: y + abs(x.sum()) + 1, np.float32(0), schedule="conditional"
)"""


@pytest.mark.parametrize("function", [SUM, SUM_IN_A_LOOP], ids=["sum", "sum_in_a_loop"])
def test_a_device_that_is_lost_is_told_by_whatever_comes_next(function):
    run = subprocess.run(
        [sys.executable, "-c", LOST.replace("FUNCTION", function)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(["CUDA_ERROR_ILLEGAL_ADDRESS"] * 3)
    assert "Traceback" not in run.stderr
