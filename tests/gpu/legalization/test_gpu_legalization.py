"""With each feature of graphs missing, the device gives what NumPy gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

import tracegraph
from lowering.cuda.open_devices import open_device
from lowering.legalization.legalize import needed_features
from lowering.plan import launch_graph
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import Feature, Features, override
from tests.corpus import CASES
from tests.helpers.compiled import on_gpu
from tests.helpers.forced import BRANCHING
from tests.helpers.parameters import in_turn
from tests.helpers.running import assert_case_agrees

MISSING: dict[str, dict[str, bool]] = {
    "no_body_updates": {"body_updates": False},
    "host_driven": {"conditional_nodes": False},
}


@pytest.fixture(scope="module", autouse=True)
def conditional_nodes_only() -> Iterator[None]:
    """A node for each loop and branch, and no copies: else there is little to replace."""
    with choices.override(branches="conditional", loops="conditional", operands="in_place"):
        yield


@pytest.mark.parametrize(("name", "step"), in_turn(BRANCHING, MISSING))
def test_results_do_not_depend_on_features(name: str, step: str) -> None:
    with override(**MISSING[step]):
        assert_case_agrees(CASES[name], on_gpu)


def everything(x: Any, n: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        y = tracegraph.cond(i % 2 == 0, lambda y: y + x, lambda y: y * 2, y)
        return tracegraph.switch(i, [lambda y: -y, lambda y: y + 1, lambda y: y - x], y)

    return tracegraph.fori_loop(0, n, body, x)


def with_transform(x: Any, n: Any) -> Any:
    return everything(x, n), np.fft.fft(x)


using_all = tracegraph.jit(with_transform, device="cuda", scratch="per_launch")
"""A function of all features."""


@pytest.mark.parametrize("feature", get_args(Feature))
def test_a_probe_says_what_happens(feature: Feature) -> None:
    """What the probe finds is what a graph that uses the feature does."""
    device = open_device(0)
    answer = device.supports(feature)
    assert device.supports(feature) is answer
    with override(**{feature: True}):
        compiled = using_all.lower(np.ones(500), 3)
        assert feature in needed_features(compiled.plan)
        if answer:
            result, _ = compiled.compile()(np.ones(500), 3)
            np.testing.assert_array_equal(np.asarray(result), everything(np.ones(500), 3))


def test_a_probed_executable_uses_what_the_device_has() -> None:
    device = open_device(0)
    compiled = using_all.lower(np.ones(500), 3).compile()
    found: Features = compiled.executable.features
    assert all(getattr(found, f) == device.supports(f) for f in get_args(Feature))


def test_missing_features_are_replaced_in_the_plan_that_runs() -> None:
    x = np.ones(500)
    lowered = tracegraph.jit(everything, device="cuda").lower(x, 3)
    with override(body_updates=False):
        compiled = lowered.compile()
    assert compiled.plan.indirect
    assert "pointer table" in compiled.explain()
    np.testing.assert_array_equal(np.asarray(compiled(x, 3)), everything(x, 3))


def test_scratch_is_kept_where_launches_cannot_allocate_it() -> None:
    with override(memory_nodes=False):
        compiled = using_all.lower(np.ones(500), 3).compile()
    assert not compiled.plan.per_launch
    assert "kept between launches: no memory nodes here\n" in compiled.explain()
    result, _ = compiled(np.ones(500), 3)
    np.testing.assert_array_equal(np.asarray(result), everything(np.ones(500), 3))


@pytest.mark.parametrize("step", MISSING)
def test_arguments_may_move_without_a_new_build(step: str) -> None:
    with override(**MISSING[step]):
        run = tracegraph.jit(everything, device="cuda")
        for n in (0, 1, 5):
            x = np.full(500, float(n + 1))
            moved = tracegraph.asarray(x, device="cuda")
            np.testing.assert_array_equal(np.asarray(run(moved, n)), everything(x, n))
        assert run.stats()["builds"] == 1


def test_a_long_table_of_addresses_moves_with_its_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch_graph, "MOST_ENTRIES", 7)

    def total(*arguments: Any) -> Any:
        *parts, n = arguments
        return tracegraph.fori_loop(0, n, lambda i, c: sum(parts, c), parts[-1])

    with override(body_updates=False):
        run = tracegraph.jit(total, device="cuda")
        for shift in range(3):
            parts = [np.full(3000, float(k + shift)) for k in range(20)]
            moved = [tracegraph.asarray(part, device="cuda") for part in parts]
            np.testing.assert_array_equal(np.asarray(run(*moved, 2)), total(*parts, 2))
        assert run.stats()["builds"] == 1
        assert run.stats()["bytes_copied"] == 0
        assert len(run.lower(*parts, 2).compile().plan.indirect) > 7


def test_a_product_in_a_loop_that_the_host_drives() -> None:
    def iterate(a: Any, x: Any, n: Any) -> Any:
        return tracegraph.fori_loop(0, n, lambda i, x: (a @ x) % 7, x)

    rng = np.random.default_rng(0)
    a, x = (rng.integers(0, 5, (64, 64)).astype("f8") for _ in range(2))
    with override(conditional_nodes=False):
        compiled = tracegraph.jit(iterate, device="cuda").lower(a, x, 4).compile()
    assert any(node.bodies for node in compiled.plan.graph.nodes)
    assert "host-driven" in compiled.explain()
    np.testing.assert_array_equal(np.asarray(compiled(a, x, 4)), iterate(a, x, 4))


def test_the_time_limit_stops_a_loop_that_the_host_drives() -> None:
    forever = tracegraph.jit(
        lambda x: tracegraph.while_loop(lambda x: x[0] >= 0, lambda x: x + 1, x), device="cuda"
    )
    count = tracegraph.jit(
        lambda n: tracegraph.while_loop(lambda c: c < n, lambda c: c + 1, 0), device="cuda"
    )
    with override(conditional_nodes=False):
        with pytest.raises(tracegraph.errors.TimeLimitError), tracegraph.time_limit(0.2):
            np.asarray(forever(np.zeros(4)))
        assert int(count(100)) == 100
