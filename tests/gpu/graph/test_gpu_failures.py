"""Whatever driver call fails in a build, nothing is left behind, and the next build works."""

import gc
import re
from functools import wraps
from itertools import count

import numpy as np
import pytest

import tracegraph
from tests.helpers.processes import end_of
from tracegraph import cond, debug, fori_loop

TABLE = np.random.default_rng(3).integers(0, 3, (64, 64)).astype(float)
X = np.eye(64)

ENDS = {"cuStreamEndCapture"}
"""What a driver does though it reports a failure."""

RELEASES = {"cuUserObjectRelease"}
"""Calls of finalizers, which tell nobody of a failure."""

STEPS = (
    *("allocate", "allocate_host", "clear", "copy_to_device", "record", "synchronize", "load"),
    *("kernel", "launch_kernel", "new_graph", "create_condition", "add_kernel", "add_memory"),
    *("add_free", "add_conditional", "capture", "library", "synchronize_capture_stream", "tie"),
    *("instantiate", "updater", "launcher"),
)
"""What is asked of `CudaDriver` in a build; some of it calls the driver by cuda.core."""


class InjectedError(RuntimeError):
    """The failure that was asked for."""


class Failing:
    """Counts the steps of a driver and its calls, and lets one of them fail."""

    def __init__(self, patch):
        from lowering.driver import (
            cuda_driver,
            device,
            executables,
            graph_nodes,
            graphs,
            user_objects,
            whole_graphs,
        )

        self.made, self.fail_at = [], 0
        self.failed = None  # the name of the call that failed
        launched = (cuda_driver, device, executables)
        for module in (*launched, graph_nodes, graphs, user_objects, whole_graphs):
            patch.setattr(module, "driver", Calls(self, module.driver))
        kind = cuda_driver.CudaDriver
        for name in STEPS:
            patch.setattr(kind, name, self.step(getattr(kind, name)))

    def fails(self, name):
        self.made.append(name)
        if len(self.made) != self.fail_at:
            return False
        self.failed = name
        return True

    def step(self, function):
        @wraps(function)
        def called(*args, **kwargs):
            if self.fails(function.__name__):
                raise InjectedError(function.__name__)
            return function(*args, **kwargs)

        return called

    def run(self, step, fail_at=0):
        """Take a step of which this call is to fail."""
        self.made, self.fail_at, self.failed = [], fail_at, None
        try:
            return step()
        finally:
            self.fail_at = 0


class Calls:
    """The functions of cuda.bindings, of which one may say that it failed."""

    def __init__(self, failing, real):
        self._failing, self._real = failing, real

    def __getattr__(self, name):
        found = getattr(self._real, name)
        if not name.startswith("cu") or name in RELEASES:
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


def telling(x, n):
    def step(i, y):
        debug.print("{}", i)
        return (y @ TABLE) % 7 + x

    def told(step, total):
        pass

    y = fori_loop(0, n, step, x, schedule="conditional", progress=told)
    return y + TABLE


def build(function=program, **options):
    return tracegraph.jit(function, device="cuda", **options).lower(X, 3).compile()


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
    from lowering.cuda.open_devices import open_device

    gc.collect()
    device = open_device(0)
    device.timeline.settle()
    tracegraph.memory_stats()  # lets go of what nobody has any more
    owners = len(device.driver._user_objects._owners)
    return dict(device.heap.holdings.held), owners, len(device.heap.executables)


def is_capturing():
    from cuda.bindings import driver  # noqa: TID251 - asks, and changes nothing

    from lowering.cuda.open_devices import open_device

    found, status = driver.cuStreamIsCapturing(open_device(0).driver._capture_stream.handle)
    assert found == driver.CUresult.CUDA_SUCCESS
    return status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def assert_nothing_is_left(failing, step):
    """Let a step fail at each of its calls of the driver: what is held is as before. The calls."""
    failing.run(step)
    before, failed = held(), []
    for number in count(1):
        try:
            failing.run(step, fail_at=number)
        except RuntimeError as error:
            name = failing.failed
            told = str(error)
        else:
            assert failing.failed is None
            break
        assert re.search(rf"^{name}|{name} failed with", told)
        assert not is_capturing(), name
        assert held() == before, name
        failed.append(name)
    assert {"cuGraphAddKernelNode", "cuGraphRetainUserObject", "add_conditional"} <= {*failed}
    assert {"cuStreamBeginCaptureToGraph", "cuStreamEndCapture"} <= {*failed}
    return failed


BUILDS = {
    "kept": {},
    "per_launch": {"scratch": "per_launch"},
    "telling": {"function": telling},
}


@pytest.mark.parametrize("name", BUILDS)
def test_a_build_that_fails_at_any_call_of_the_driver_leaves_nothing(failing, name):
    options = BUILDS[name]
    compiled = build(**options)
    np.testing.assert_array_equal(np.asarray(compiled(X, 3)), expected())
    failed = assert_nothing_is_left(failing, lambda: build(**options))
    assert "cuGraphInstantiateWithParams" in failed
    assert ("cuGraphAddMemFreeNode" in failed) == (name == "per_launch")
    assert ("allocate_host" in failed) == (name == "telling")
    np.testing.assert_array_equal(np.asarray(build(**options)(X, 3)), expected())
    np.testing.assert_array_equal(np.asarray(compiled(X, 3)), expected())


def test_an_export_that_fails_at_any_call_of_the_driver_leaves_nothing(failing):
    from cuda.core import Device

    compiled = build()
    x = tracegraph.asarray(X, device="cuda")
    assert_nothing_is_left(failing, lambda: compiled.export_graph(x, 3))
    exported = compiled.export_graph(x, 3)
    exported.definition.instantiate().launch(Device(0).create_stream())
    Device(0).sync()
    np.testing.assert_array_equal(np.asarray(exported.results), expected())
    np.testing.assert_array_equal(np.asarray(compiled(X, 3)), expected())


@pytest.mark.parametrize("function", [program, telling])
def test_a_first_call_on_a_stream_that_fails_at_any_call_of_the_driver_leaves_nothing(
    failing, function
):
    compiled = build(function)
    x = tracegraph.asarray(X, device="cuda")

    def call():
        with tracegraph.stream(tracegraph.Stream()):
            return np.asarray(compiled(x, 3))

    failed = assert_nothing_is_left(failing, call)
    assert {"cuGraphInstantiateWithParams", "cuGraphLaunch"} <= {*failed}
    np.testing.assert_array_equal(call(), expected())
    np.testing.assert_array_equal(np.asarray(compiled(x, 3)), expected())


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
    code, printed, errors = end_of(LOST.replace("FUNCTION", function))
    assert code == 0, errors
    assert printed.strip() == str(["CUDA_ERROR_ILLEGAL_ADDRESS"] * 3)
    assert "Traceback" not in errors
