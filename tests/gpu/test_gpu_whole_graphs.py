"""What users can ask of whole graphs, on a device."""

import numpy as np
import pytest

import tracegraph
from lowering.legalization.features import override
from lowering.scheduling import overrides as choices
from tracegraph.errors import FallbackWarning
from tracegraph.staging import fallbacks

pytestmark = pytest.mark.gpu


def test_a_supported_driver_has_all_but_what_the_device_lacks():
    found = tracegraph.features("cuda")
    print(found)
    modern = found.compute_capability >= (9, 0)
    assert found.cuda_version >= (13, 0)
    assert found.conditional_nodes
    assert found.cooperative_launches
    assert found.clusters == modern
    assert found.programmatic_edges == modern
    assert found == tracegraph.features("cuda:0")


def test_probes_leave_the_device_usable():
    tracegraph.features("cuda")
    double = tracegraph.jit(lambda x: 2 * x, device="cuda")
    np.testing.assert_array_equal(np.asarray(double(np.arange(3.0))), [0, 2, 4])


def test_a_loop_that_the_host_drives_warns_and_computes_the_same(monkeypatch):
    monkeypatch.setattr(fallbacks, "_warned", set())

    def halve(x):
        return tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    x = np.ones(300)
    with (
        override(conditional_nodes=False),
        choices.override(loops="conditional"),
        pytest.warns(FallbackWarning, match=r"the host drives while_loop at test_gpu_whole"),
    ):
        driven = tracegraph.jit(halve, device="cuda")(x)
    np.testing.assert_array_equal(np.asarray(driven), x / 512)


def test_launches_count_the_arguments_that_they_copy_for_a_library():
    x = tracegraph.asarray(np.ones((512, 512)), device="cuda")
    product = tracegraph.jit(lambda x, y: x @ y, device="cuda")
    for _ in range(3):
        product(x, x)
    assert product.stats()["bytes_copied"] == 6 * x.nbytes


def test_a_warmed_function_builds_nothing_at_its_first_call():
    f = tracegraph.jit(
        lambda x: tracegraph.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x), device="cuda"
    )
    with choices.override(loops="conditional"):
        f.warm(tracegraph.ArrayType("float64", (300,)))
    assert (f.stats()["builds"], f.stats()["launches"]) == (1, 0)
    np.testing.assert_array_equal(np.asarray(f(np.ones(300))), np.ones(300) / 512)
    (program,) = f.programs()
    assert (program.launches, program.schedules[0].schedule) == (1, "WHILE node")


def test_a_graph_is_uploaded_for_each_stream():
    f = tracegraph.jit(lambda x: 2 * x, device="cuda")
    stream = tracegraph.Stream("cuda")
    with tracegraph.stream(stream):
        f.warm(tracegraph.ArrayType("float64", (300,)))
        result = f(np.ones(300))
    np.testing.assert_array_equal(np.asarray(result), np.full(300, 2.0))
    assert f.stats()["builds"] == 1
