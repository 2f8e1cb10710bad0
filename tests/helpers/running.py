"""The ways of running a function without a GPU: all must give what the eager run gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.legalization.pointer_table import with_pointer_table
from lowering.lower import lower
from tests.corpus import Case
from tests.helpers.agreement import assert_agrees
from tracegraph import Array, tree
from tracegraph.staging.stages import Lowered, Traced
from tracegraph.testing import ways as testing_ways
from tracegraph.testing.trials import Trial

Function = Callable[..., Any]


def eager(function: Function, *arguments: Any) -> Any:
    """The specification: plain NumPy and Python. Arguments are copies, which it may write to."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(
            *tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, arguments)
        )


def lowered(
    function: Function, *arguments: Any, donated: Sequence[int] = (), device: str = "host"
) -> Lowered:
    """The function planned for arguments like these, of which some may be overwritten."""
    stage = traced(function, *arguments, donated=donated, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about constants
        return stage.lower()


def traced(
    function: Function, *arguments: Any, donated: Sequence[int] = (), device: str = "host"
) -> Traced:
    """The function traced for arguments like these, of which some may be overwritten."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about constants
        return tracegraph.jit(function, donate_argnums=donated, device=device).trace(*arguments)


def by(way: str) -> Function:
    """Runs a function in a way of `tracegraph.testing`, as often as that does."""

    def run(function: Function, *arguments: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = testing_ways.WAYS[way].runs(Trial(function, arguments, {}))
            first, *others = [run() for run in runs]
        for other in others:
            for one, another in zip(*map(tree.leaves, (first, other)), strict=True):
                assert np.asarray(one).tobytes() == np.asarray(another).tobytes()
        return first

    return run


poisoned = by("poisoned")
"""On the host twice, with memory that nobody has written made conspicuous."""


def unfused(function: Function, *arguments: Any) -> Any:
    """On the host, with a kernel for each equation: merging them must have saved nodes."""
    stage = lowered(function, *arguments)
    plan = lower(stage.traced.optimized, fusion=False)
    assert stage.plan.node_counts.total() <= plan.node_counts.total()
    return by("unfused")(function, *arguments)


def _the_same(stage: Lowered, results: list[Any]) -> Any:
    """What all runs of a plan gave."""
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            assert first.tobytes() == second.tobytes(), "another run of the same plan differs"
    return tree.unflatten(stage.traced.out_structure, results[0])


def jitted(function: Function, *arguments: Any) -> Any:
    """On the host backend, the public way."""
    return tracegraph.jit(function, device="host")(*arguments)


def donated(function: Function, *arguments: Any) -> Any:
    """On the host, in the memory of the arguments; with nodes in orders that their edges allow."""
    positions = range(len(arguments))
    stage = lowered(function, *arguments, donated=positions)
    results = []
    for seed, plan in enumerate((stage.plan, with_pointer_table(stage.plan))):
        leaves = [np.array(leaf) for leaf in tree.leaves(arguments)]
        executable = HostExecutable(plan, poison=True, order=Random(seed))
        results.append(executable(leaves))
    wanted = _the_same(stage, results)
    given = tree.map(_given_away, arguments)
    jitted = tracegraph.jit(function, donate_argnums=positions, device="host")
    found = jitted(*given)
    assert all(array.memory is None for array in tree.leaves(given))
    for one, other in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        assert np.asarray(one).tobytes() == other.tobytes(), "donation changed a result"
    return found


def _given_away(leaf: Any) -> Array:
    """An Array whose memory nobody else has; a Python number stays weak."""
    return Array(np.array(leaf), weak=isinstance(leaf, bool | int | float | complex))


WAYS: dict[str, Function] = {
    "interpreted": by("interpreted"),
    "optimized": by("optimized"),
    "jitted": jitted,
    "in_any_order": by("any_order"),
    "donated": donated,
    "planned_for_cuda": by("planned_for_cuda"),
    "unfused": unfused,
}


RUNS = {"in_any_order": 3, "planned_for_cuda": 2, "donated": 3}
"""How often a way runs the function, where that is not once."""


def assert_case_agrees(case: Case, run: Function) -> None:
    """Require NumPy's structure, dtypes, shapes and values of a way; arguments unchanged."""
    before = [np.array(leaf) for leaf in tree.leaves(case.arguments)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = run(case.function, *case.arguments)
    wanted, structure = tree.flatten(eager(case.function, *case.arguments))
    found, found_structure = tree.flatten(results)
    assert found_structure == structure
    for got, expected in zip(found, wanted, strict=True):
        assert_agrees(np.asarray(got), np.asarray(expected), case.ulps)
    for leaf, old in zip(tree.leaves(case.arguments), before, strict=True):
        assert np.asarray(leaf).tobytes() == old.tobytes(), "an argument was written to"
