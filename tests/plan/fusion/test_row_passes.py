"""Rows: folds and what is made of them are passes of one kernel, where that takes less time."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.plan.nests.kernel import ReduceNest, RowNest
from tests.helpers.compiled import host_plan_of
from tests.helpers.plans import kinds, nests_of
from tracegraph import ArrayType

F32 = np.float32
F64 = np.float64


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def test_softmax_is_three_passes_over_rows_of_one_kernel():
    plan = host_plan_of(softmax, ArrayType(F64, (1024, 64)))
    (node,) = plan.graph.nodes
    (nest,) = node.kernel.nests
    assert isinstance(nest, RowNest)
    assert [len(each.accumulators) for each in nest.passes] == [1, 1, 0]
    assert plan.arena_bytes == 0


def layer_norm(x, axis, keepdims):
    centred = x - np.mean(x, axis, keepdims=True)
    mean_square = np.mean(centred * centred, axis, keepdims=keepdims)
    deviation = np.sqrt(mean_square + 1e-5)
    return centred / (deviation if keepdims else np.expand_dims(deviation, axis))


def rms_norm(x, axis, keepdims):
    scale = np.sqrt(np.mean(x * x, axis, keepdims=keepdims) + 1e-5)
    return x / (scale if keepdims else np.expand_dims(scale, axis))


def log_softmax(x, axis, keepdims):
    y = x - np.max(x, axis, keepdims=True)
    total = np.log(np.sum(np.exp(y), axis, keepdims=keepdims))
    return y - (total if keepdims else np.expand_dims(total, axis))


def with_statistics(x, axis, keepdims):
    mean, deviation = (each(x, axis, keepdims=keepdims) for each in (np.mean, np.std))
    if keepdims:
        return (x - mean) / deviation, mean, deviation
    return (x - np.expand_dims(mean, axis)) / np.expand_dims(deviation, axis), mean, deviation


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1024, 64), -1),
        ((400, 1024), 0),
        ((8, 96, 64), 1),
        ((1024, 1, 64), 2),
        ((1024, 1, 64), (1, 2)),
        ((1, 4096), 1),
        ((32, 2, 32, 2), (1, 3)),
    ],
)
@pytest.mark.parametrize("norm", [layer_norm, rms_norm, log_softmax, with_statistics])
def test_a_norm_is_one_kernel_whether_its_statistics_keep_their_axes(norm, shape, axis, keepdims):
    def affine(x, weight, bias):
        result = norm(x, axis, keepdims)
        y, *statistics = result if isinstance(result, tuple) else (result,)
        return y * weight + bias, *statistics

    along = ArrayType(F64, shape[-1:])
    plan = host_plan_of(affine, ArrayType(F64, shape), along, along)
    ((nest,),) = [node.kernel.nests for node in plan.graph.nodes]
    assert isinstance(nest, RowNest)
    assert plan.arena_bytes == 0


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_a_fold_whose_epilogue_keeps_its_axes_is_still_shared_by_blocks(axis):
    plan = host_plan_of(
        lambda x: np.sqrt(np.mean(np.square(x), axis=axis, keepdims=True)),
        ArrayType(F64, (5918, 167)),
    )
    (node,) = plan.graph.nodes
    (nest,) = node.kernel.nests
    assert isinstance(nest, ReduceNest)
    assert plan.arena_bytes == 0


def test_few_long_rows_are_not_left_to_one_block_each():
    plan = host_plan_of(softmax, ArrayType(F64, (2, 1 << 20)))
    nests = nests_of(plan.graph)
    assert all(len(nest.passes) == 1 for nest in nests if isinstance(nest, RowNest))


@pytest.mark.parametrize(
    ("dtype", "shape", "nodes"),
    [
        (F32, (5918, 167), 2),
        (F32, (600, 167), 1),  # so little that a kernel more takes longer
        (F32, (60_000, 12), 1),  # no tiles turn
        (F64, (2000, 167), 1),  # a sector is four elements rather than eight
    ],
)
def test_rows_do_not_store_much_across_memory(dtype, shape, nodes):
    def function(x):
        y = np.tanh(x)
        return y, np.max(y, axis=1), np.sin(y).T

    assert kinds(host_plan_of(function, ArrayType(dtype, shape))) == {"KernelNode": nodes}


@pytest.mark.parametrize(("size", "nodes"), [(1024, 1), (8192, 1), (8193, 2), (16_000, 2)])
def test_one_block_makes_as_many_passes_as_take_less_than_kernels(size, nodes):
    def function(x):
        return x - np.mean(x)

    assert kinds(host_plan_of(function, ArrayType(F32, (size,)))) == {"KernelNode": nodes}


@pytest.mark.parametrize(
    ("shape", "axis", "nodes"),
    [
        ((16, 50_257), 1, 1),  # few rows, but of as many blocks as a cluster has
        ((8, 50_257), 1, 3),
        ((64, 1_000_000), 1, 3),  # a cluster would read them anew for each pass
        ((100_000, 1024), 0, 3),  # a block would have 32 columns of this length
        ((500, 1024), 0, 1),
        ((10_000, 8192), 0, 1),
    ],
)
def test_rows_and_columns_are_one_kernel_where_its_blocks_fill_a_device(shape, axis, nodes):
    def standardised(x):
        powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return powers / np.sum(powers, axis=axis, keepdims=True)

    assert kinds(host_plan_of(standardised, ArrayType(F64, shape)))["KernelNode"] == nodes
