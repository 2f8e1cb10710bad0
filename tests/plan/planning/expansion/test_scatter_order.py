"""Which scatters run in parallel: by combiner, dtype, and whether a block asks for an order."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.codegen.geometry import MAX_FOLDED, MAX_SWAPS, scatter_geometry
from lowering.plan.nests.kernel import MapNest, ScatterNest
from lowering.plan.nodes import KernelNode, walk
from tracegraph import ArrayType
from tracegraph.dtypes import bfloat16

COUNT = 1000
METHODS = ("add", "multiply", "min", "max")
REAL = ("bool", "int8", "uint16", "int32", "uint64", "float16", bfloat16, "float32", "float64")
FLOATS = ("float16", bfloat16, "float32", "float64", "complex64")


def updates_of(method, dtype, places=100, deterministic=False, indices=(COUNT,), unique=False):
    """The nests of `x.at[i].method(v, unique=unique)` on a GPU."""

    def update(x, i, v):
        return getattr(x.at[i], method)(v, unique=unique)

    types = (
        ArrayType(dtype, (places,)),
        ArrayType(np.int64, indices),
        ArrayType(dtype, indices),
    )
    jitted = tracegraph.jit(update, device="cuda")
    if deterministic:
        with tracegraph.deterministic():
            plan = jitted.lower(*types).plan
    else:
        plan = jitted.lower(*types).plan
    kernels = [node.kernel for node in walk(plan.graph) if isinstance(node, KernelNode)]
    return [nest for kernel in kernels for nest in kernel.nests]


def scatter_of(*args, **kwargs):
    """The one scatter among these."""
    (found,) = [nest for nest in updates_of(*args, **kwargs) if isinstance(nest, ScatterNest)]
    return found


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_real_updates_are_in_any_order(method, dtype):
    nest = scatter_of(method, dtype)
    assert nest.any_order
    geometry = scatter_geometry(nest, 256)
    assert (geometry.atomic, geometry.blocks) == (True, 4)


@pytest.mark.parametrize("method", METHODS)
def test_of_complex_updates_sums_are(method):
    assert scatter_of(method, "complex64").any_order == (method == "add")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("method", ["add", "multiply"])
def test_deterministic_sums_and_products_of_floats_are_in_order(method, dtype):
    nest = scatter_of(method, dtype, deterministic=True)
    assert (nest.repeats, nest.any_order) == (1, False)
    assert not scatter_geometry(nest, 256).atomic


@pytest.mark.parametrize(
    ("method", "dtype"), [("add", "int32"), ("multiply", "int8"), ("min", "float32")]
)
def test_what_no_order_changes_is_deterministic_in_parallel(method, dtype):
    assert scatter_of(method, dtype, deterministic=True).any_order


def test_replacing_is_in_order():
    nest = scatter_of("set", "float32")
    assert (nest.repeats, nest.any_order) == (1, False)


def test_a_single_update_is_a_map():
    nests = updates_of("add", "float32", indices=())
    assert [(type(nest), nest.space) for nest in nests] == [(MapNest, (100,)), (MapNest, ())]


@pytest.mark.parametrize(
    ("method", "dtype", "swapped"),
    [
        ("multiply", "float64", True),
        ("add", "int16", True),
        ("add", bfloat16, True),
        ("add", "float16", False),
        ("add", "float32", False),
        ("max", "float32", False),
        ("add", "bool", False),
    ],
)
def test_many_swaps_of_few_elements_are_made_in_order(method, dtype, swapped):
    few = scatter_of(method, dtype, places=2, indices=(2 * MAX_SWAPS,))
    assert scatter_geometry(few, 256).atomic
    many = scatter_of(method, dtype, places=2, indices=(2 * MAX_SWAPS + 1,))
    assert scatter_geometry(many, 256).atomic == (not swapped)


@pytest.mark.parametrize(
    ("method", "dtype", "places", "updates", "folds"),
    [
        ("add", "float64", 8, 1 << 20, True),
        ("add", "complex128", MAX_FOLDED, 1 << 22, True),
        ("add", "float64", MAX_FOLDED + 1, 1 << 22, False),
        ("add", "float64", 8, 1 << 16, False),  # too few for as many blocks
        ("add", "float16", 8, 1 << 20, False),
        ("max", "float64", 8, 1 << 20, True),
        ("multiply", "float64", 8, 1 << 16, True),  # else they would wait for each other
    ],
)
def test_updates_of_few_elements_are_folded_in_shared_memory(method, dtype, places, updates, folds):
    nest = scatter_of(method, dtype, places=places, indices=(updates,))
    geometry = scatter_geometry(nest, 256)
    assert geometry.atomic
    size = places * np.dtype(dtype).itemsize
    assert geometry.shared_bytes == (size if folds else 0)
    assert geometry.blocks * geometry.threads * geometry.points >= updates


def test_writes_of_one_value_need_no_order():
    types = ArrayType(np.float64, (100,)), ArrayType(np.int64, (COUNT,))
    for update, repeats in ((lambda x, i: x.at[i].set(7), 0), (lambda x, i: x.at[i].set(x[i]), 1)):
        plan = tracegraph.jit(update, device="cuda").lower(*types).plan
        kernels = [node.kernel for node in walk(plan.graph) if isinstance(node, KernelNode)]
        (found,) = [n for k in kernels for n in k.nests if isinstance(n, ScatterNest)]
        assert (found.repeats, found.any_order) == (repeats, False)


@pytest.mark.parametrize("dtype", [*REAL, "complex64"], ids=str)
@pytest.mark.parametrize("method", [*METHODS, "set"])
def test_unique_updates_are_maps(method, dtype):
    for deterministic in (False, True):
        nests = updates_of(method, dtype, deterministic=deterministic, unique=True)
        assert [(type(n), n.space) for n in nests] == [(MapNest, (100,)), (MapNest, (COUNT,))]


def test_updates_at_repeated_places_read_what_was_there_before():
    def update(x):
        i = np.arange(8) // 2  # known, and in range: reads and writes have the same indices
        return x.at[i].set(x[i] * 2 + np.arange(8.0)), x.at[i].add(x[i])

    x = np.arange(5.0) + 1
    replaced, added = tracegraph.jit(update, device="host")(x)
    np.testing.assert_array_equal(replaced, [3, 7, 11, 15, 5])
    np.testing.assert_array_equal(added, [3, 6, 9, 12, 5])
