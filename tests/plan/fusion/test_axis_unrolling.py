"""Stacks of several sources: written out along the new axis, and fused with their sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.analysis import nest_expressions, nest_loads
from lowering.plan.nests.kernel import MapNest
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.target.overrides import override
from tests.helpers.running import by
from tracegraph.ir.scalar import Select

Function = Callable[..., Any]

X = np.random.default_rng(0).uniform(-1, 1, (5, 12, 34))
SHIFTS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1))


def rolled(f: Any) -> Any:
    return np.stack([np.roll(f[k], shift, (0, 1)) for k, shift in enumerate(SHIFTS)])


def computed(f: Any) -> Any:
    """One kernel computes the sources, and what is common to them, and stores the stack."""
    total = np.exp(f[0] + f[1])
    return np.stack([total * f[k] + k for k in range(5)])


def concatenated(f: Any) -> Any:
    return np.concatenate([f[:1] * 2, f[1:3], f[3:4] + f[:1], f[:2], f[4:]])


def chosen(f: Any) -> Any:
    stacked = np.stack([f[4] + 1, f[2] * 2, f[0], f[1] - f[3], f[3]])
    return np.where(f[0] > 0, stacked, f[::-1])


def middle(f: Any) -> Any:
    """The axis has others before and behind it."""
    return np.stack([f[:, 1] * k + f[:, k] for k in range(6)], axis=1)


def in_a_loop(f: Any) -> Any:
    def step(k: Any, f: Any) -> Any:
        return np.stack([f[1] * 2, f[0] + f[3], f[2] - k, f[3] * f[0], f[1] * f[2]])

    return tracegraph.fori_loop(0, 5, step, f)


def rolled_in_a_loop(f: Any) -> Any:
    return tracegraph.fori_loop(0, 5, lambda k, f: rolled(f) * 0.5 + f.mean(0), f)


def in_a_branch(f: Any) -> Any:
    return tracegraph.cond(f[0, 0, 0] > 0, rolled, chosen, f)


def joined(f: Any) -> Any:
    """Parts of 34, 34, 68, 34 and 34 elements."""
    return np.concatenate([f[0, 0] * 2, f[1, 3], f[2, :2].ravel(), -f[3, 1], f[4, 0] + f[0, 1]])


def joined_columns(f: Any) -> Any:
    return np.concatenate([f[0], f[1] * 2, f[2] - f[0], f[3]], axis=1)


def summed(f: Any) -> Any:
    """Folds over the axis of what is stacked, of values that depend on each other."""
    rows = [f[0]]
    for k in range(1, 5):
        rows.append(f[k] - rows[-1] * 0.5)
    stacked = np.stack(rows * 2)
    return np.sum(stacked * stacked, axis=0) - np.max(stacked, axis=0)


def summed_columns(f: Any) -> Any:
    return np.sum(np.stack([f[0], f[1] * 2, f[2] - f[0], f[3]], axis=-1), axis=-1)


PROGRAMS = (
    *(joined, joined_columns, summed, summed_columns),
    *(rolled, computed, concatenated, chosen, middle),
    *(in_a_loop, rolled_in_a_loop, in_a_branch),
)


def kernels(function: Function, *arguments: Any) -> list[KernelNode]:
    graph = tracegraph.jit(function, device="cuda").lower(*arguments).plan.graph
    return [node for node in walk(graph) if isinstance(node, KernelNode)]


def selections(node: KernelNode) -> int:
    return sum(type(e) is Select for nest in node.kernel.nests for e in nest_expressions(nest))


@pytest.mark.parametrize("way", ["planned_for_cuda", "poisoned", "any_order"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results_stay_the_same(function: Function, way: str) -> None:
    np.testing.assert_allclose(by(way)(function, X), function(X), rtol=1e-14)


@pytest.mark.parametrize(
    "function", [rolled, computed, concatenated, chosen], ids=lambda f: f.__name__
)
def test_one_kernel_computes_all_sources_without_selections(function: Function) -> None:
    (node,) = kernels(function, X)
    (nest,) = node.kernel.nests
    assert isinstance(nest, MapNest)
    assert nest.space == (12, 34)
    assert len(nest.stores) == len(function(X))
    assert not selections(node)
    assert all(load.guard is None for load in nest_loads(nest))


@pytest.mark.parametrize(
    ("function", "space", "stores"),
    [(joined, (34,), 6), (joined_columns, (12, 34), 4)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_arrays_of_a_common_length_that_are_joined(
    function: Function, space: tuple[int, ...], stores: int
) -> None:
    (node,) = kernels(function, X)
    (nest,) = node.kernel.nests
    assert isinstance(nest, MapNest)
    assert (nest.space, len(nest.stores), selections(node)) == (space, stores, 0)


@pytest.mark.parametrize("function", [summed, summed_columns], ids=lambda f: f.__name__)
def test_folds_over_few_sources_are_written_out(function: Function) -> None:
    (node,) = kernels(function, X)
    (nest,) = node.kernel.nests
    assert isinstance(nest, MapNest)
    assert (nest.space, selections(node)) == ((12, 34), 0)


def test_the_other_axes_keep_their_order() -> None:
    (node,) = kernels(middle, X)
    (nest,) = node.kernel.nests
    assert nest.space == (5, 34)
    assert not selections(node)


def test_a_carry_is_updated_in_place() -> None:
    def repeated(f: Any) -> Any:
        def step(k: Any, f: Any) -> Any:
            return np.stack([f[1] * 2, f[0] + f[3], f[2] - k, f[3] * f[0], f[1] * f[2]])

        return tracegraph.fori_loop(0, 100, step, f, schedule="conditional")

    nests = [nest for node in kernels(repeated, X) for nest in node.kernel.nests]
    updates = [nest for nest in nests if nest.space == (12, 34)]
    assert updates
    for nest in updates:
        (written,) = {store.buffer for store in nest.stores}
        assert written in {load.buffer for load in nest_loads(nest)}


def short(f: Any) -> Any:
    return np.stack([f[0], f[1], f[2]])


def long(f: Any) -> Any:
    return np.stack([f[k % 5] * k for k in range(17)])


def innermost(f: Any) -> Any:
    return np.stack([f[k] * k for k in range(5)], axis=-1)


def of_prime_lengths(f: Any) -> Any:
    return np.concatenate([f[k, 0, : 30 - k] * k for k in range(5)])


def over_short_rows(f: Any) -> Any:
    return np.stack([f[k, 0, :9] * k for k in range(5)])


@pytest.mark.parametrize("function", [short, long, innermost, over_short_rows, of_prime_lengths])
def test_others_are_selected_by_position(function: Function) -> None:
    assert sum(map(selections, kernels(function, X)))


def test_no_kernels_are_added() -> None:
    """A sibling of the same space shares the kernel of a map over all positions."""

    def siblings(f: Any, g: Any) -> Any:
        return chosen(f), f * 2, g + f, np.sin(g)

    assert len(kernels(siblings, X, X)) == 1


def test_selection_can_be_forced() -> None:
    with override(sources="selected"):
        assert sum(map(selections, kernels(rolled, X)))
