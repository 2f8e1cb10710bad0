"""`jitted.warm` does all that a first call does, but for the launch."""

import gc
from dataclasses import dataclass

import numpy as np
import pytest

import lowering
import tracegraph
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import override
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tracegraph import ArrayType
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.errors import ClosedError, OutOfMemoryError, UnsupportedArgumentError
from tracegraph.staging import executable_cache

VECTOR = ArrayType("float64", (300,))


def use(monkeypatch, driver):
    backend = RecordingBackend(driver)
    monkeypatch.setattr(lowering, "backend", lambda device: backend)
    monkeypatch.setattr(executable_cache, "_cached", ConcurrentWeakSet())
    return backend


@pytest.fixture
def backend(monkeypatch):
    return use(monkeypatch, RecordingDriver())


def on_device(backend, *types):
    return [tracegraph.Array(backend.device.pool.buffer(type_)) for type_ in types]


def jitted(**options):
    return tracegraph.jit(lambda x: 2 * x + 1, device="cuda:0", **options)


def test_a_first_call_builds_nothing_more(backend):
    f = jitted()
    f.warm(VECTOR)
    driver = backend.device.driver
    assert [call.operation for call in driver.calls][-1] == "upload"
    assert (driver.count("upload"), driver.count("launch")) == (1, 0)
    graphs = driver.count("instantiate"), len(driver.graphs)
    f(*on_device(backend, VECTOR))
    assert (driver.count("instantiate"), len(driver.graphs)) == graphs
    assert driver.count("launch") == 1
    stats = f.stats()
    assert (stats["traces"], stats["builds"], stats["launches"]) == (1, 1, 1)


def test_arrays_serve_as_well_and_stay_as_they_are(backend):
    f = jitted(donate_argnums=0)
    (x,) = on_device(backend, VECTOR)
    f.warm(x)
    assert x.memory is not None
    f.warm(np.ones(300))
    assert f.stats()["builds"] == 1
    assert backend.device.driver.count("copy_to_device") == 0


def test_numbers_and_named_arguments(backend):
    f = tracegraph.jit(lambda x, *, n: x * n, device="cuda:0", static_argnames="n")
    f.warm(VECTOR, n=2)
    f.warm(VECTOR, n=3)
    f(*on_device(backend, VECTOR), n=3)
    assert f.stats()["builds"] == 2


def test_each_stream_has_a_graph_of_its_own(backend):
    f, stream = jitted(), 8
    f.warm(VECTOR)
    driver = backend.device.driver
    with tracegraph.stream(stream):
        f.warm(VECTOR)
    uploads = [call.stream for call in driver.calls if call.operation == "upload"]
    assert len(set(uploads)) == 2
    instantiated = driver.count("instantiate")
    with tracegraph.stream(stream):
        f(*on_device(backend, VECTOR))
    assert driver.count("instantiate") == instantiated


def test_every_part_of_a_graph_that_the_host_drives_is_uploaded(backend):
    f = tracegraph.jit(
        lambda x: tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x), device="cuda:0"
    )
    with override(conditional_nodes=False), choices.override(loops="conditional"):
        f.warm(VECTOR)
    driver = backend.device.driver
    assert driver.count("upload") == driver.count("instantiate") > 1


def test_modes_are_warmed_apart(backend):
    f = jitted()
    f.warm(VECTOR)
    with tracegraph.deterministic():
        f.warm(VECTOR)
    assert [program.modes for program in f.programs()] == [(), ("deterministic",)]


def test_what_was_evicted_is_built_again(backend):
    f = jitted()
    f.warm(VECTOR)
    (cached,) = f._builds.executables.values()
    assert cached.evict()
    (before,) = f.programs()
    assert before.evicted
    f.warm(VECTOR)
    (after,) = f.programs()
    assert not after.evicted
    assert f.stats()["builds"] == 2


def test_an_executable_that_its_holder_closed_raises(backend):
    compiled = jitted().lower(VECTOR).compile()
    compiled.close()
    with pytest.raises(ClosedError):
        compiled.executable.upload()


def test_a_failure_at_any_call_leaves_a_function_that_can_be_warmed(monkeypatch):
    backend = use(monkeypatch, RecordingDriver())
    jitted().warm(VECTOR)
    for number in range(1, len(backend.device.driver.calls) + 1):
        driver = RecordingDriver(fail_at=number)
        backend = use(monkeypatch, driver)
        f = jitted()
        with pytest.raises(InjectedError):
            f.warm(VECTOR)
        f.warm(VECTOR)
        assert driver.calls[-1].operation == "upload"
        del f
        driver.graphs.clear()
        gc.collect()
        assert not [e for e in driver.live_executables if not e.closed]


def test_a_lack_of_memory_names_the_function(monkeypatch):
    use(monkeypatch, RecordingDriver(memory=1 << 10))
    f = tracegraph.jit(lambda x: np.sort(x)[::-1] + np.cumsum(x), device="cuda:0")
    with pytest.raises(OutOfMemoryError, match="lambda"):
        f.warm(ArrayType("float64", (1 << 20,)))


def test_misuse(backend):
    with pytest.raises(UnsupportedArgumentError, match="x"):
        jitted().warm("float64")


@tracegraph.register_dataclass
@dataclass
class Model:
    scale: float

    @tracegraph.jit
    def scaled(self, x):
        return self.scale * x


def test_methods(backend):
    model = Model(2.0)
    model.scaled.warm(np.ones(3))
    (program,) = model.scaled.programs()
    assert program == Model.scaled.programs()[0]
    assert program.types == (
        tracegraph.ArrayType("float64", (), weak=True),
        tracegraph.ArrayType("float64", (3,)),
    )
