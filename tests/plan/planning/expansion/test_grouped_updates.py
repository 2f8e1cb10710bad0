"""Which updates are sorted by element, and what that adds to a Plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen.geometry import scatter_geometry
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import ScatterNest
from lowering.plan.nodes import KernelNode, Node, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.sort import SortNode
from lowering.plan.target.overrides import override
from tracegraph import ArrayType
from tracegraph.dtypes import bfloat16

MANY, FEW = 4096, 1000


def nodes(
    function: Callable[..., Any],
    *types: ArrayType,
    deterministic: bool = True,
    device: str = "cuda",
) -> list[Node]:
    with tracegraph.deterministic() if deterministic else nullcontext():
        return list(walk(tracegraph.jit(function, device=device).lower(*types).plan.graph))


def scatters(found: list[Node]) -> Iterator[ScatterNest]:
    for node in found:
        if isinstance(node, KernelNode):
            yield from (nest for nest in node.kernel.nests if isinstance(nest, ScatterNest))


def sorts(found: list[Node]) -> list[SortNode]:
    return [node for node in found if isinstance(node, SortNode)]


def types(dtype: Any, count: int, places: int = 300) -> tuple[ArrayType, ...]:
    return (
        ArrayType(dtype, (places,)),
        ArrayType(np.int64, (count,)),
        ArrayType(dtype, (count,)),
    )


def update(method: str, **promise: bool) -> Callable[..., Any]:
    return lambda x, i, v: getattr(x.at[i], method)(v, **promise)


@pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64", "complex64"], ids=str)
@pytest.mark.parametrize("method", ["add", "multiply", "set"])
def test_many_updates_in_order_are_sorted(method: str, dtype: Any) -> None:
    found = nodes(update(method), *types(dtype, MANY))
    (nest,) = scatters(found)
    assert (nest.repeats, nest.any_order, nest.grouped) == (1, False, True)
    geometry = scatter_geometry(nest, 256)
    assert (geometry.atomic, geometry.grouped, geometry.blocks) == (False, True, MANY // 256)
    (sort,) = sorts(found)
    assert sort.keys.buffer.type == ArrayType(np.uint16, (MANY,))


@pytest.mark.parametrize(
    ("function", "dtype", "count", "deterministic"),
    [
        (update("add"), "float32", FEW, True),
        (update("add"), "float32", MANY, False),
        (update("add"), "int32", MANY, True),
        (update("max"), "float32", MANY, True),
        (update("set", unique=True), "float32", MANY, True),
        (lambda x, i, v: x.at[i].set(2.0), "float32", MANY, True),
        (lambda x, i, v: x.at[3:].set(v[3:300]), "float32", MANY, True),
    ],
)
def test_others_are_not(
    function: Callable[..., Any], dtype: str, count: int, deterministic: bool
) -> None:
    found = nodes(function, *types(dtype, count), deterministic=deterministic)
    assert not sorts(found)
    assert not any(nest.grouped for nest in scatters(found))


def test_replacing_is_sorted_without_a_block_as_well() -> None:
    assert sorts(nodes(update("set"), *types("int8", MANY), deterministic=False))


def test_the_host_makes_updates_in_their_order() -> None:
    assert not sorts(nodes(update("add"), *types("float32", MANY), device="host"))


def test_keys_are_the_smallest_integers_that_hold_all_places() -> None:
    for places, dtype in ((255, "u1"), (256, "u2"), (65_535, "u2"), (65_536, "u4")):
        (sort,) = sorts(nodes(update("add"), *types("float32", MANY, places)))
        assert sort.keys.buffer.type.dtype == np.dtype(dtype)


def test_scatters_at_the_same_indices_share_a_sort() -> None:
    def several(x: Any, i: Any, v: Any) -> Any:
        return x.at[i].add(v), x.at[i].set(v), np.zeros_like(x).at[i].add(v * v), x.at[i].add(i)

    found = nodes(several, *types("float32", MANY))
    assert len(sorts(found)) == 1
    assert sum(nest.grouped for nest in scatters(found)) == 4
    assert (
        len(sorts(nodes(lambda x, i, v: x.at[i].add(v).at[i - 1].add(v), *types("f4", MANY)))) == 2
    )


def looped(x: Any, i: Any, v: Any) -> Any:
    return tracegraph.fori_loop(0, 100, lambda k, x: x.at[i].add(v), x)


def pinned(x: Any, i: Any, v: Any) -> Any:
    def step(k: Any, x: Any) -> Any:
        return x.at[i].add(v)

    return tracegraph.fori_loop(0, 100, step, x, schedule="one_kernel")


def test_a_loop_that_is_pinned_to_one_kernel_has_no_sort() -> None:
    found = nodes(looped, *types("float32", MANY))
    assert sorts(found)
    assert any(isinstance(node, WhileNode) for node in found)
    found = nodes(pinned, *types("float32", MANY))
    assert not sorts(found)
    assert any(isinstance(node, PersistentKernelNode) for node in found)
    with override(loops="one_kernel"):
        assert not sorts(nodes(looped, *types("float32", MANY)))


def test_both_forms_can_be_forced() -> None:
    with override(updates="sorted"):
        assert sorts(nodes(update("add"), *types("float32", 2)))
    with override(updates="sequential"):
        found = nodes(update("add"), *types("float32", MANY))
    (nest,) = scatters(found)
    assert not sorts(found)
    assert (nest.any_order, nest.grouped) == (False, False)


def test_empty_arrays_need_no_order() -> None:
    with override(updates="sorted"):
        assert not sorts(nodes(update("add"), *types("float32", 0)))
        assert not sorts(nodes(update("add"), *types("float32", 5, 0)))
