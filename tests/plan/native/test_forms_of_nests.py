"""Forms that only native code has: checked blocks, searched positions, columns, tiles, BLAS."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lowering.backends.host import TARGET
from lowering.lower import lower
from lowering.native.blas import routine
from lowering.native.module import modules_of
from lowering.native.schedule import NestSchedule, schedule_of
from lowering.plan.nodes import KernelNode, walk
from tests.helpers.agreement import assert_agrees
from tests.plan.native.running_natively import compiled, native, native_plan


def schedules(function: Any, *arguments: Any) -> list[NestSchedule]:
    """The schedules of all nests of a function."""
    plan = native_plan(function, *arguments)
    nodes = [node for node in walk(plan.graph) if isinstance(node, KernelNode)]
    return [schedule_of(nest) for node in nodes for nest in node.kernel.nests]


RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("function", [np.sin, np.cos, np.tan])
def test_operands_out_of_the_fast_range_are_right(function: Any) -> None:
    x = RANDOM.normal(size=5000)
    x[[7, 1500, 4999]] = 1e22, np.inf, -3e300
    with np.errstate(invalid="ignore"):
        wanted = function(x)
    assert_agrees(native(function, x), wanted, 2)


def test_operands_that_are_overwritten_are_checked_before() -> None:
    x = RANDOM.normal(size=5000)
    x[[7, 1500, 4999]] = 1e22, 12.0, -3e300
    plan = native_plan(np.sin, x, donated=[0])
    assert plan.aliases == {0: 0}
    (found,) = compiled(plan)([x.copy()])
    assert_agrees(found, np.sin(x), 2)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u8", "?"])
@pytest.mark.parametrize("function", [np.argmax, np.argmin])
def test_positions_are_those_of_the_first_extreme(function: Any, dtype: str) -> None:
    shapes = ((17,), (5000,), (3, 700), (40, 50, 2))
    for shape in shapes if dtype in ("f4", "i1") else shapes[1:3]:
        x = RANDOM.integers(0, 40, shape).astype(dtype)
        assert native(function, x) == function(x)
        for axis in range(x.ndim):
            found = native(lambda x, axis=axis: function(x, axis=axis), x)
            np.testing.assert_array_equal(found, function(x, axis=axis))


def test_positions_of_nan_and_of_infinities() -> None:
    for values in ([np.nan], [-np.inf], [np.inf], [np.nan, np.inf], [-0.0, 0.0]):
        x = np.full(3000, values[0])
        x[2000:] = values[-1]
        assert native(np.argmax, x) == np.argmax(x)
        assert native(np.argmin, x) == np.argmin(x)
    x = RANDOM.normal(size=3000)
    x[2500] = np.nan
    assert native(np.argmax, x) == 2500


@pytest.mark.parametrize("shape", [(600, 700), (64, 129), (3, 70, 66)])
def test_transpositions_have_tiles_of_a_cache_line(shape: tuple[int, ...]) -> None:
    x = RANDOM.normal(size=shape)
    np.testing.assert_array_equal(
        native(lambda x: np.swapaxes(x, -1, -2) + 1, x), np.swapaxes(x, -1, -2) + 1
    )
    (found,) = schedules(lambda x: np.swapaxes(x, -1, -2) + 1, x)
    assert [loop.tile for loop in found.points[-2:]] == [8, 8]


@pytest.mark.parametrize("columns", [9, 512, 1200])
def test_folds_and_scans_along_a_distant_axis_read_columns(columns: int) -> None:
    x = RANDOM.normal(size=(70, columns))
    assert [each.fold for each in schedules(lambda x: x.sum(0), x)] == ["columns"]
    assert [each.fold for each in schedules(lambda x: np.cumsum(x, 0), x)] == ["columns"]
    np.testing.assert_array_equal(native(lambda x: np.cumsum(x, 0), x), np.cumsum(x, 0))
    np.testing.assert_array_equal(native(lambda x: x.max(0), x), x.max(0))


@pytest.mark.parametrize("columns", [9, 700])
def test_passes_along_a_distant_axis_read_columns(columns: int) -> None:
    def scaled(x: Any) -> Any:
        powers = np.exp(x - x.max(0))
        return powers, powers.sum(0), powers.argmax(0)

    x = RANDOM.uniform(0.1, 3.0, (70, columns))
    assert {each.fold for each in schedules(scaled, x)} <= {"columns", None}
    for found, wanted in zip(native(scaled, x), scaled(x), strict=True):
        assert_agrees(found, wanted, 16)


def test_axes_that_are_one_in_memory_are_one_loop() -> None:
    (found,) = schedules(lambda x: x * 2, np.ones((3, 4, 5)))
    assert str(found) == "i0·i1·i2 < 60"
    (found,) = schedules(lambda x: np.roll(x, 1, axis=1), np.ones((30, 40)))
    assert str(found) == "i0 < 30; i1 < 40 cut at 1"


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_products_of_all_layouts_are_blas(dtype: str) -> None:
    assert routine("dgemm") is not None
    a, b = (RANDOM.integers(-9, 9, shape).astype(dtype) for shape in ((70, 80), (80, 90)))
    v = RANDOM.integers(-9, 9, 80).astype(dtype)
    cases: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (lambda a, b: a @ b, (a, b)),
        (lambda a, b: (b.T @ a.T).T + 0, (a, b)),
        (lambda a, b: a.T @ b.T, (a.T.copy(), b.T.copy())),
        (lambda a, v: a @ v, (a, v)),
        (lambda a, v: v @ a, (a.T.copy(), v)),
        (lambda a, v: v @ a.T, (a, v)),
    )
    for function, arguments in cases:
        np.testing.assert_array_equal(native(function, *arguments), function(*arguments))


def test_products_do_not_read_what_they_write() -> None:
    """Results are new memory, which may hold NaN."""
    a, v = np.ones((200, 200)), np.ones(200)
    plan = native_plan(lambda a, v: (a @ v, a @ a), a, v)
    executable = compiled(plan, poison=False)
    for _ in range(3):
        for found in executable([a, v]):
            np.testing.assert_array_equal(found, 200)
            found.fill(np.nan)


@pytest.mark.parametrize("length", [30, 1000, 3000, 9000])
def test_values_that_several_passes_need_are_computed_once(length: int) -> None:
    def softmax(x: Any) -> Any:
        powers = np.exp(x - x.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    def beside(x: Any) -> Any:
        powers = np.exp(x)
        return powers / (x.sum(1, keepdims=True) + powers.max(1, keepdims=True))

    x = RANDOM.uniform(0.1, 3.0, (5, length))
    assert_agrees(native(softmax, x), softmax(x), 16)
    assert_agrees(native(beside, x), beside(x), 16)


def test_plans_for_a_gpu_run_natively() -> None:
    from lowering.backends.cuda import TARGET as CUDA
    from tests.helpers.running import traced

    x = RANDOM.normal(size=(20, 30))
    program = traced(lambda x: np.cumsum(np.exp(x), axis=1).sum(0), x).optimized
    by_gpu, own = (compiled(lower(program, target))([x])[0] for target in (CUDA, TARGET))
    assert_agrees(by_gpu, own, 8)


def test_rows_of_many_lengths_keep_their_values_in_the_same_memory() -> None:
    """So that a thread's stack, of which most systems give a megabyte or more, is large enough."""

    def softmaxes(x: Any) -> list[Any]:
        found = []
        for length in range(4000, 4040):
            e = np.exp(x[:length] - x[:length].max())
            found.append(e / e.sum())
        return found

    sizes = [
        8 * sum(map(int, re.findall(r"alloca \[(\d+) x double\]", module.text)))
        for module in modules_of(native_plan(softmaxes, np.ones(5000))).modules
    ]
    assert 1 << 15 < max(sizes) < 1 << 18
