"""The work of nodes: bytes and operations that follow from shapes, and the limits of a device."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tracegraph
from lowering.plan.nests.work import Work, least_seconds
from lowering.plan.reports.rooflines import (
    border_bytes,
    least_time,
    rooflines,
    total_work,
    works,
)
from lowering.plan.target.rates import H100, Rates
from tracegraph import ArrayType

RATES = Rates("a device", 1e9, {"float64": 1e9}, {"float64": 4e9}, {"float64": 1e8})


def plan_of(function, *types):
    return tracegraph.jit(function, device="cuda").lower(*types).plan


def kernels(function, *types):
    return [each.work for each in works(plan_of(function, *types)) if each.node.kind == "kernel"]


VECTOR = ArrayType("float64", (1000,))
MATRIX = ArrayType("float64", (300, 200))


def test_a_map_reads_its_operands_and_writes_its_result_once():
    (work,) = kernels(lambda x, y: 2 * x + y * x, VECTOR, VECTOR)
    assert work.required == work.moved == 3 * 8000
    assert work.operations == {"float64": 3000}
    assert not work.special


def test_neighbours_are_read_once():
    (work,) = kernels(lambda x: x[2:] - 2 * x[1:-1] + x[:-2], VECTOR)
    assert work.required == 8000 + 8 * 998


def test_a_slice_is_read_alone():
    (work,) = kernels(lambda x: np.sqrt(x[10:30]), VECTOR)
    assert work.required == 2 * 160
    assert work.special == {"float64": 10}


def test_what_does_not_depend_on_an_axis_is_computed_once_along_it():
    (work,) = kernels(lambda m, x: m * (x + 1), MATRIX, ArrayType("float64", (200,)))
    assert work.operations == {"float64": 60_200}


def test_each_pass_over_a_row_moves_it():
    (work,) = kernels(
        lambda m: (m - m.max(1, keepdims=True)) / (m * m).sum(1, keepdims=True), MATRIX
    )
    assert work.required == 2 * 8 * 60_000
    assert work.moved == 3 * 8 * 60_000


def test_complex_products_count_real_operations():
    (work,) = kernels(lambda x: x * x, ArrayType("complex64", (10,)))
    assert work.operations == {"float32": 60}


def test_products_of_a_library_are_counted_apart():
    square = ArrayType("float64", (512, 512))
    (work,) = [each.work for each in works(plan_of(np.matmul, square, square))]
    assert work.products == {"float64": 2 * 512**3}
    assert work.required == 3 * 8 * 512**2
    assert not work.operations


def test_a_matrix_that_a_batch_shares_counts_once():
    left, right = ArrayType("float64", (8, 256, 256)), ArrayType("float64", (256, 256))
    found = [e.work for e in works(plan_of(np.matmul, left, right)) if e.node.kind == "library"]
    assert sum(work.required for work in found) == 8 * (2 * 8 + 1) * 256**2


def test_a_sort_moves_its_rows_in_each_pass():
    (work,) = [each.work for each in works(plan_of(np.sort, ArrayType("float32", (100_000,))))]
    assert work.required == 2 * 400_000
    assert work.moved == 5 * work.required


def loops(x, n):
    x = tracegraph.fori_loop(0, 30, lambda i, v: np.sin(v[::-1]), x)
    return tracegraph.fori_loop(0, n, lambda i, v: np.cos(v[::-1]), x)


def test_bodies_count_for_each_step_where_that_is_known():
    plan = plan_of(lambda x: loops(x, 12), ArrayType("float64", (1 << 20,)))
    assert total_work(plan).special == {"float64": 42 << 20}
    unknown = plan_of(loops, VECTOR, ArrayType("int64"))
    assert total_work(unknown) is None
    assert least_time(unknown, RATES) is None
    assert "\nat least " in rooflines(unknown)


def test_the_sum_does_not_depend_on_the_schedule():
    def counted(unroll):
        def run(x):
            return tracegraph.fori_loop(0, 24, lambda i, v: np.sin(v[::-1]), x, unroll=unroll)

        return total_work(plan_of(run, ArrayType("float64", (1 << 20,)))).special["float64"]

    assert counted(1) == counted(4) == counted(24) == 24 << 20


@pytest.mark.parametrize(
    ("work", "seconds"),
    [
        (Work(required=5000, moved=9000), 5e-6),
        (Work(required=5000, operations={"float64": 7000.0, "int": 1e12}), 7e-6),
        (Work(required=5000, products={"float64": 1e6}), 2.5e-4),
        (Work(required=5000, operations={"float64": 7e3}, special={"float64": 1e3}), 1.7e-5),
    ],
)
def test_the_slowest_unit_decides(work, seconds):
    assert least_seconds(work, RATES) == pytest.approx(seconds)


def test_the_table_adds_up():
    plan = plan_of(
        lambda x, y: (np.exp(x) @ y, np.sort(x[0])), MATRIX, ArrayType("float64", (200,))
    )
    assert least_time(plan, RATES) == pytest.approx(
        sum(least_seconds(each.work, RATES) for each in works(plan))
    )
    text = rooflines(plan, H100)
    *rows, border = text.splitlines()
    assert border_bytes(plan) == 8 * (60_000 + 200 + 300 + 200)
    assert border.startswith("arguments, results and constants: 486 kB, ")
    assert rows[0].split("  ")[0] == "work of"
    assert rows[-1].startswith("sum ")
    assert all(len(a) <= max(map(len, rows)) for a, _ in pairwise(rows))


def test_explain_has_it_for_each_device():
    function = tracegraph.jit(lambda x: np.sin(x), device="host")
    host = function.lower(VECTOR).explain()
    assert "must move" in host
    assert "least µs" not in host
    cuda = tracegraph.jit(lambda x: np.sin(x), device="cuda").lower(VECTOR).explain()
    assert "least µs" in cuda
    assert cuda.endswith(f"limits of {H100.name}")


def test_a_plan_without_work_has_no_table():
    assert rooflines(plan_of(lambda x: x, ArrayType("float64", (0,)))) == ""


def test_a_thread_for_each_lane_moves_what_it_carries_once():
    def run(x):
        return tracegraph.fori_loop(0, 100, lambda i, x: x * 0.5 + 1, x, schedule="per_lane")

    plan = plan_of(run, ArrayType("float64", (1 << 20,)))
    known = {each.node.kind: each.work for each in works(plan) if each.work.required > 1000}
    assert known["persistent"].required == 2 * (8 << 20)
    total = total_work(plan)
    assert total is not None
    assert total.required < 100 * (8 << 20)
