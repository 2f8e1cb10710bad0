"""`tracegraph.features`: what a device can do, by probes that leave nothing behind."""

import dataclasses

import pytest

import tracegraph
from lowering.cuda import open_devices
from lowering.cuda.compilation.device_report import device_features
from lowering.plan.target.features import override
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tracegraph.errors import DeviceLostError

FLAGS = (
    *("conditional_nodes", "body_updates", "memory_nodes", "library_updates"),
    *("programmatic_edges", "clusters", "cooperative_launches"),
)


class Refusing(RecordingDriver):
    """A driver that refuses to instantiate graphs with nodes of a kind or launch."""

    def __init__(self, refused=None, error=None):
        super().__init__()
        self.refused, self.error = refused, error or RuntimeError("CUDA_ERROR_NOT_SUPPORTED")

    def instantiate(self, graph, *, hosts=False):
        for node in graph.walk():
            launch = node.launch
            kinds = {node.kind}
            if launch is not None and launch.cooperative:
                kinds.add("cooperative")
            if launch is not None and launch.cluster is not None:
                kinds.add("cluster")
            if self.refused in kinds:
                raise self.error
        return super().instantiate(graph)


def report(driver):
    return RecordingBackend(driver).features()


def test_a_complete_device_has_everything():
    found = report(RecordingDriver())
    assert all(getattr(found, flag) for flag in FLAGS)
    assert (found.device, found.compute_capability, found.cuda_version) == (
        "cuda:0",
        (9, 0),
        (13, 0),
    )


@pytest.mark.parametrize(
    ("refused", "missing"),
    [
        ("while", "conditional_nodes"),
        ("switch", "conditional_nodes"),
        ("if_else", "conditional_nodes"),
        ("cluster", "clusters"),
        ("cooperative", "cooperative_launches"),
    ],
)
def test_what_cannot_be_instantiated_is_missing(refused, missing):
    found = report(Refusing(refused))
    assert [flag for flag in FLAGS if not getattr(found, flag)] == [missing]


def test_a_device_is_tried_once_and_nothing_is_left():
    backend = RecordingBackend()
    driver = backend.device.driver
    first = backend.features()
    calls = len(driver.calls)
    assert backend.features() == first
    assert len(driver.calls) == calls
    assert not [e for e in driver.live_executables if not e.closed]
    driver.graphs.clear()
    assert not driver.live_memory


@pytest.mark.parametrize(
    "error", [MemoryError("full"), DeviceLostError("CUDA_ERROR_LAUNCH_FAILED")]
)
def test_no_memory_and_a_lost_device_are_no_answers(error):
    with pytest.raises(type(error)):
        report(Refusing("while", error))


def test_a_failure_at_any_call_is_an_answer_and_leaves_nothing():
    calls = len(_calls(RecordingDriver()))
    for number in range(1, calls + 1):
        driver = RecordingDriver(fail_at=number)
        found = report(driver)
        assert [flag for flag in FLAGS if not getattr(found, flag)]
        assert not [e for e in driver.live_executables if not e.closed] or (
            driver.calls[number - 1].operation == "close"
        )


def _calls(driver):
    report(driver)
    return driver.calls


def test_what_is_declared_missing_is_missing_and_named():
    with override(conditional_nodes=False):
        found = report(RecordingDriver())
    assert not found.conditional_nodes
    assert found.declared_missing == ("conditional_nodes",)
    assert "lacks conditional nodes (declared)" in str(found)


def test_the_environment_counts(monkeypatch):
    monkeypatch.setenv("TRACEGRAPH_FEATURES", "no-memory-nodes")
    assert report(RecordingDriver()).declared_missing == ("memory_nodes",)


def test_it_prints_short():
    assert str(report(Refusing("cluster"))) == (
        "cuda:0: recording driver, compute capability 9.0, driver for CUDA 13.0\n"
        "  has conditional nodes, body updates, memory nodes, library updates, "
        "programmatic edges, cooperative launches\n"
        "  lacks clusters"
    )


def test_the_host_has_no_graphs():
    found = tracegraph.features("host")
    assert not any(getattr(found, flag) for flag in FLAGS)
    assert str(found) == f"host: {found.name}\n  no CUDA graphs"


def test_the_record_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        tracegraph.features("host").clusters = True


def test_misuse():
    with pytest.raises(TypeError, match='a device is a string such as "host"'):
        tracegraph.features(0)
    with pytest.raises(ValueError, match="no backend for device 'tpu'"):
        tracegraph.features("tpu")


def test_the_report_is_about_an_open_device():
    assert device_features(RecordingBackend().device).device == "cuda:0"


def test_a_driver_that_is_missing_is_said_in_a_sentence(monkeypatch):
    def missing(ordinal):
        raise RuntimeError("Ensure the driver is installed.")

    monkeypatch.setattr("lowering.driver.CudaDriver", missing)
    with pytest.raises(RuntimeError, match="driver is installed; without an NVIDIA GPU") as raised:
        open_devices._open.__wrapped__(7)
    assert raised.value.__suppress_context__
