"""What the planner makes of programs: nodes, memory, edges. Results are checked elsewhere."""

from __future__ import annotations

from collections import Counter
from functools import reduce

import numpy as np
import pytest

import tracegraph
from lowering.backends import cuda, host
from lowering.fusion.pointwise import MAX_EXPRESSIONS
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.analysis import nest_reads, nest_size, nest_writes
from lowering.plan.nests.kernel import MapNest, ReduceNest, RowNest, ScatterNest
from lowering.plan.nodes import KernelNode, LibraryNode, walk
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import override
from lowering.planning import materialize
from lowering.planning.materialize import choose_materialized
from tests.helpers.compiled import host_plan_of, plan_of
from tracegraph import ArrayType

CUDA, HOST = cuda.TARGET.costs, host.TARGET.costs
F32 = np.float32
F64 = np.float64
INDEX = np.array([7, 0, 3, 3, 1, 6, 2, 5])


def kinds(plan: Plan) -> Counter[str]:
    return Counter(type(node).__name__ for node in walk(plan.graph))


def materialized(region, sinks, costs):
    return choose_materialized(region, sinks, costs).materialized


def vector(n: int = 8) -> ArrayType:
    return ArrayType(F64, (n,))


def test_an_elementwise_chain_with_views_is_one_kernel_and_no_scratch():
    def chain(x, y):
        z = np.sin(x.T.reshape(6, 2)[::-1] + y)
        return np.exp(z) * z

    plan = host_plan_of(chain, ArrayType(F64, (3, 4)), ArrayType(F64, (2,)))
    assert kinds(plan) == {"KernelNode": 1}
    assert plan.arena_bytes == 0


@pytest.mark.parametrize("rounds", [1, 10, 40, 200])
def test_a_map_of_one_space_is_one_kernel_however_its_values_are_shared(rounds, monkeypatch):
    def step(x, y, scale):
        y = y[::-1]
        for _ in range(rounds):
            x, y = np.sin(x) * y, np.clip(x - y * scale, -1, 1)
        return x, y, x < y

    arguments = (vector(), vector(), ArrayType(F64, ()))
    together = host_plan_of(step, *arguments)
    monkeypatch.setattr(materialize, "MAX_SINGLE_KERNEL", 0)
    step_by_step = host_plan_of(step, *arguments)
    kernels = [[n.kernel.nests for n in p.graph.nodes] for p in (together, step_by_step)]
    sizes = [[list(map(nest_size, nests)) for nests in each] for each in kernels]
    assert sizes[0] == sizes[1]
    assert together.arena_bytes == step_by_step.arena_bytes
    if rounds < 200:
        assert len(together.graph.nodes) == 1
        assert together.arena_bytes == 0


def test_what_a_map_of_one_space_shares_is_not_stored_to_be_forwarded():
    def step(x, y):
        shared = x * y + 1.0
        return shared - x, shared * y, shared > 0

    region = tracegraph.jit(step).trace(vector(), vector()).optimized.body
    assert materialized(region, 3, CUDA) == set()
    condition = {region.results[2]}
    assert materialized(region, 2, CUDA) == condition, "a condition is read by a signal"
    deep = tracegraph.jit(lambda x: reduce(np.multiply, [x] * 150)).trace(vector()).optimized.body
    assert len(materialized(deep, 1, CUDA)) == 2, "kernels are built by recursion"


@pytest.mark.parametrize("moved", [lambda t: np.roll(t, 3), lambda t: t[INDEX]])
def test_the_host_computes_forwards_and_once(moved):
    """Where an op is a call, two gathers take longer than one, and what is done twice twice."""

    def function(x, y):
        shared = x * 2
        return moved(shared + y), shared - y

    region = tracegraph.jit(function).trace(vector(), vector()).optimized.body
    shared, total = (eqn.outputs[0] for eqn in region.eqns[:2])
    assert materialized(region, 2, HOST) == {shared, total}
    assert materialized(region, 2, CUDA) == set()


@pytest.mark.parametrize(("picked", "stores"), [(1 << 20, True), (1 << 19, False), (1 << 4, False)])
def test_the_host_computes_alone_what_is_picked_if_that_is_less(picked, stores):
    region = tracegraph.jit(lambda x, y, index: (x * y)[index])
    types = [ArrayType(np.float32, (1 << 20,))] * 2
    body = region.trace(*types, ArrayType(np.int32, (picked,))).optimized.body
    assert materialized(body, 1, HOST) == ({body.eqns[0].outputs[0]} if stores else set())


def test_the_host_rolls_what_is_used_in_many_rows_once():
    """Inlined, all that is made of it is made in parts."""
    region = tracegraph.jit(lambda r, x: np.maximum(np.roll(r * 2, 3), x))
    body = region.trace(ArrayType(F32, (900,)), ArrayType(F32, (50, 900))).optimized.body
    rolled = body.eqns[-2].outputs[0]
    assert rolled in materialized(body, 1, HOST)
    assert rolled not in materialized(body, 1, CUDA)


@pytest.mark.parametrize(("rows", "stores"), [(100, True), (100_000, False)])
def test_the_host_rolls_small_arrays_before_it_picks_of_them(rows, stores):
    """To find the positions of each part takes longer than to roll a few elements."""
    region = tracegraph.jit(lambda x, index: np.roll(x * 2, 1, axis=1)[index])
    types = (ArrayType(F32, (rows, 3)), ArrayType(np.int32, (8,)))
    body = region.trace(*types).optimized.body
    assert (body.eqns[1].outputs[0] in materialized(body, 1, HOST)) == stores


@pytest.mark.parametrize(
    ("arrays", "run", "picked", "stores"),
    [
        (1, 1, 1 << 22, False),  # a pass more saves no access
        (2, 1, 1 << 22, True),
        (2, 1, 1 << 20, False),
        (3, 1, 1 << 20, True),
        (2, 8, 1 << 22, False),  # rows of 8: as many bytes in a fourth of the accesses
        (3, 64, 1 << 22, False),
    ],
)
def test_a_gather_of_what_many_arrays_make_reads_it_from_memory(arrays, run, picked, stores):
    """On CUDA the first are as 42 to 52, 83 to 56, 29 to 32 and 47 to 36 µs, computed there and
    stored; rows 25 to 31 and 22 to 35.
    """
    n = 1 << 22

    def gathered(index, *factors):
        return reduce(np.multiply, factors, 2.0)[index]

    rows = ArrayType(F32, (n,) if run == 1 else (n // run, run))
    index = ArrayType(np.int32, (picked // run,))
    plan = plan_of(gathered, index, *[rows] * arrays, device="cuda")
    assert kinds(plan) == {"KernelNode": 1 + stores}
    assert bool(plan.arena_bytes) == stores


def test_a_gather_reads_small_arrays_beside_a_large_one():
    def gathered(index, x, scale):
        return (x * scale)[index, index % 8]

    x, scale = ArrayType(F32, (1 << 19, 8)), ArrayType(F32, (8,))
    plan = plan_of(gathered, ArrayType(np.int32, (1 << 21,)), x, scale, device="cuda")
    assert kinds(plan) == {"KernelNode": 1}


def test_what_is_rolled_is_computed_of_many_arrays_at_once():
    def rolled(x, y, z):
        return np.roll(x * y + z, 5)

    large = ArrayType(F32, (1 << 22,))
    assert kinds(plan_of(rolled, large, large, large, device="cuda")) == {"KernelNode": 1}


def _apart(x, p):
    shared = np.sin(x)
    return shared + 1, *[p[k:] for k in range(12)], shared * 2


def _many_results(x, p):
    for _ in range(15):
        x = np.sin(x) * x + np.cos(x)
    return [x] * 500


def _turned(x, p):
    for k in range(24):
        view = x.reshape(2, 2, 2).transpose(2, 0, 1).reshape(4, 2).T.reshape(8)
        x = np.sin(x) + p[k : k + 8][::-1].reshape(4, 2).T.reshape(8) * view
    return x, x * 2


def _with_other_parameters(x, p):
    x = np.sin(x) * x
    return x + 1, p, x * 2


@pytest.mark.parametrize("function", [_apart, _many_results, _turned, _with_other_parameters])
def test_what_would_not_be_one_kernel_repeats_no_work(function, monkeypatch):
    def costs():
        plan = host_plan_of(function, vector(), vector(70_000))
        nests = [nest for node in plan.graph.nodes for nest in node.kernel.nests]
        return len(plan.graph.nodes), sum(map(nest_size, nests)), plan.arena_bytes

    found = costs()
    monkeypatch.setattr(materialize, "MAX_SINGLE_KERNEL", 0)
    assert found == costs()


def test_views_of_views_are_no_deeper_than_what_is_computed():
    def deep(x):
        for k in range(76):
            x = x.reshape(8, -1)[::-1] if k % 2 else x.T
        for _ in range(60):
            x = np.sin(x)
        return x

    region = tracegraph.jit(deep).trace(ArrayType(F64, (8, 12))).optimized.body
    assert not choose_materialized(region, 1, CUDA).is_single_kernel
    host_plan_of(deep, ArrayType(F64, (8, 12)))


def test_results_that_are_stored_at_once_know_all_lines():
    def step(x):
        y = x
        for _ in range(30):
            y = np.sin(y) - y
        return (
            y * x,
            y + x,
        )

    (node,) = host_plan_of(step, vector()).graph.nodes
    first = step.__code__.co_firstlineno
    assert [source.line - first for source in node.sources] == [3, 5, 6]


def test_nodes_know_the_lines_of_all_they_compute():
    def step(x):
        shared = x + 1
        return (
            shared * x,
            shared - x,
        )

    def two(x):
        moved = np.roll(x, 1) * x
        return moved, np.sum(x)

    (node,) = host_plan_of(step, vector()).graph.nodes
    first = node.sources[0].line
    assert [source.line - first for source in node.sources] == [0, 2, 3]
    found = {
        source.line - two.__code__.co_firstlineno
        for n in host_plan_of(two, vector()).graph.nodes
        for source in n.sources
    }
    assert found == {1, 2}


def test_a_reduction_takes_its_producers_and_its_epilogue():
    plan = host_plan_of(lambda x: np.sqrt(((x * 2.0) ** 2).sum(1)) + 1.0, ArrayType(F64, (5, 7)))
    (node,) = plan.graph.nodes
    assert isinstance(node, KernelNode)
    (nest,) = node.kernel.nests
    assert isinstance(nest, ReduceNest)
    assert (nest.space, nest.loop) == ((5,), (7,))
    assert plan.arena_bytes == 0


def test_sibling_reductions_over_the_same_axes_share_one_pass():
    plan = host_plan_of(lambda x: (np.sum(x), np.max(x)), vector())
    (node,) = plan.graph.nodes
    (nest,) = node.kernel.nests
    assert len(nest.accumulators) == 2


def test_an_expensive_value_that_two_index_maps_use_is_stored_once():
    def both(x):
        s = np.sin(x) * np.cos(x)
        return s + s[::-1]

    plan = host_plan_of(both, vector())
    assert kinds(plan) == {"KernelNode": 2}
    assert plan.arena_bytes == 256


def test_the_condition_is_set_by_the_kernel_that_computes_it():
    def halve(x):
        return tracegraph.while_loop(lambda v: np.sum(v * v) > 1.0, lambda v: v * 0.5, x)

    plan = host_plan_of(halve, vector())
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    for graph in (plan.graph, loop.body):
        setters = [
            nest
            for node in graph.nodes
            if isinstance(node, KernelNode)
            for nest in node.kernel.nests
            if getattr(nest, "signals", ())
        ]
        assert len(setters) == 1
        assert isinstance(setters[0], ReduceNest | RowNest)


def test_a_pointwise_carry_is_updated_in_place():
    def count(x):
        return tracegraph.while_loop(lambda s: s[1] < 9, lambda s: (s[0] * 2.0, s[1] + 1), (x, 0))

    plan = host_plan_of(count, vector())
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    assert len(loop.body.nodes) == 1
    stored = {s.buffer for nest in loop.body.nodes[0].kernel.nests for s in nest.stores}
    assert len(stored) == 2
    assert plan.arena_bytes == 2 * 256


def test_swapped_carries_need_no_further_memory():
    def swap(x, y):
        return tracegraph.while_loop(
            lambda s: s[2] < 9, lambda s: (s[1], s[0], s[2] + 1), (x, y, 0)
        )

    plan = host_plan_of(swap, vector(), vector())
    assert plan.arena_bytes == 3 * 256
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    assert len(loop.body.nodes) == 1


def test_a_carry_that_is_read_at_other_points_moves_at_the_end_of_the_body():
    def smooth(x):
        return tracegraph.fori_loop(0, 9, lambda _, v: np.roll(v, 1) + np.roll(v, -1), x)

    plan = host_plan_of(smooth, vector())
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    assert len(loop.body.nodes) == 2


def test_scan_writes_slices_in_place():
    plan = host_plan_of(
        lambda xs: tracegraph.scan(lambda c, x: (c + x, c * x), 0.0, xs), vector(1024)
    )
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    nests = [nest for node in loop.body.nodes for nest in node.kernel.nests]
    scatters = [nest for nest in nests if isinstance(nest, ScatterNest)]
    assert [nest.space for nest in scatters] == [(1,)]
    assert all(nest.space in ((), (1,)) for nest in nests)


def test_the_trip_count_does_not_show_in_the_plan():
    def repeat(trips):
        return host_plan_of(
            lambda x: tracegraph.fori_loop(0, trips, lambda i, v: v + i, x), vector()
        )

    few, many = repeat(10), repeat(10_000_000)
    assert kinds(few) == kinds(many)
    assert few.arena_bytes == many.arena_bytes


def test_branches_share_scratch():
    def branch(x):
        # two maps of an expensive value force a buffer of 8 KiB in each branch
        def heavy(f):
            def run(v):
                s = f(v) * np.cos(v)
                return s + s[::-1]

            return run

        return tracegraph.cond(x[0] > 0, heavy(np.sin), heavy(np.tanh), x)

    plan = host_plan_of(branch, vector(1024))
    assert plan.arena_bytes == 8192  # one temporary for either branch


def test_branches_store_results_where_the_call_returns_them():
    def branch(p, n, x):
        y = tracegraph.cond(p, lambda x: np.sin(x), lambda x: x[::-1], x)
        return y, tracegraph.switch(n, [np.cos, lambda y: -y, lambda y: y + 1.0], y)

    plan = host_plan_of(branch, ArrayType(np.bool_), ArrayType(np.int64), vector(1024))
    assert kinds(plan) == {"KernelNode": 6, "IfElseNode": 1, "SwitchNode": 1}
    assert plan.arena_bytes == 0


@pytest.mark.parametrize(
    "inside",
    [
        lambda x: tracegraph.fori_loop(0, 3, lambda i, y: y * 2.0, x),
        lambda x: x @ x,
    ],
    ids=["loop", "product"],
)
def test_loops_and_products_in_a_branch_work_at_fixed_addresses(inside):
    matrix = ArrayType(F64, (64, 64))
    plan = host_plan_of(lambda x: tracegraph.cond(x[0, 0] > 0, inside, np.sin, x), matrix)
    *_, copy = plan.graph.nodes
    assert isinstance(copy, KernelNode)
    assert nest_writes(copy.kernel.nests[0]) == {plan.outputs[0]}
    assert plan.arena_bytes >= matrix.nbytes


def test_a_value_returned_twice_is_stored_once_and_copied_once():
    def twice(x):
        y = np.sin(x) * np.cos(x)
        return y, y, y + y[::-1]

    plan = host_plan_of(twice, vector())
    assert plan.arena_bytes == 0
    stored = [
        w for node in plan.graph.nodes for nest in node.kernel.nests for w in nest_writes(nest)
    ]
    assert Counter(stored) == Counter(plan.outputs)


def test_a_copy_of_what_a_row_stores_is_not_read_back():
    """Found by hypothesis: the product's row had not stored the first result yet."""

    def function(x):
        y = -x
        return y, y, -(x @ y)

    x = np.array([[7]], np.int8)
    found = tracegraph.jit(function, device="host")(x)
    assert [np.asarray(each).item() for each in found] == [-7, -7, 49]
    ((rows,),) = [node.kernel.nests for node in host_plan_of(function, x).graph.nodes]
    assert nest_writes(rows).isdisjoint(nest_reads(rows))


def test_merging_stops_at_a_kernel_of_many_expressions():
    def chain(x, y):
        for _ in range(2000):
            x, y = x * y, np.maximum(x, y)
        return x, y

    plan = host_plan_of(chain, vector(), vector())
    sizes = [nest_size(nest) for node in plan.graph.nodes for nest in node.kernel.nests]
    assert max(sizes) <= MAX_EXPRESSIONS
    assert min(sizes[:-1]) > MAX_EXPRESSIONS - 4, "what an equation adds"


def test_merging_stops_at_a_kernel_whose_buffers_are_all_that_its_parameters_can_hold():
    plan = host_plan_of(lambda *xs: [x + 1 for x in xs], *[vector(3)] * 2100)
    kernels = [node.kernel for node in plan.graph.nodes]
    touched = [{b for n in k.nests for b in (*nest_reads(n), *nest_writes(n))} for k in kernels]
    assert len(kernels) == 2
    assert max(map(len, touched)) <= 4095  # 32764 bytes


def test_thousands_of_arrays_are_joined_by_several_kernels():
    plan = host_plan_of(lambda *xs: np.concatenate(xs), *[vector(3)] * 4200)
    kernels = [node.kernel for node in plan.graph.nodes]
    read = [{b for nest in kernel.nests for b in nest_reads(nest)} for kernel in kernels]
    assert len(set().union(*read) & {*plan.inputs}) == 4200
    assert max(map(len, read)) <= 4000


def test_lifetimes_that_do_not_meet_share_memory():
    def chain(x):
        for _ in range(6):
            s = np.sin(x) * np.cos(x)
            x = s + s[::-1]
        return x

    plan = host_plan_of(chain, vector(1024))
    assert len(plan.offsets) > 4
    assert plan.arena_bytes == 2 * 8192


def test_independent_work_is_not_ordered():
    def two(x, y):
        return x @ x, y @ y

    square = ArrayType(F64, (64, 64))
    plan = host_plan_of(two, square, square)
    products = [k for k, n in enumerate(plan.graph.nodes) if isinstance(n, LibraryNode)]
    reach = {p: {p} for p in products}
    for i, j in sorted(plan.graph.edges):
        for seen in reach.values():
            if i in seen:
                seen.add(j)
    a, b = products
    assert b not in reach[a]
    assert a not in reach[b]


def test_library_operands_are_read_in_place_through_views_of_scratch():
    def product(x, w):
        h = np.tanh(x * 2.0)
        return h.T @ w

    plan = plan_of(product, ArrayType(F64, (90, 80)), ArrayType(F64, (90, 70)), device="cuda")
    (node,) = [n for n in plan.graph.nodes if isinstance(n, LibraryNode)]
    call = node.call
    assert isinstance(call, MatrixProduct)
    assert (call.m, call.n, call.k) == (80, 70, 90)
    assert (call.left.row_stride, call.left.column_stride) == (1, 80)
    assert [b.buffer.space for b in (call.left, call.right)] == ["scratch", "input"]


def power(a, x, n):
    return tracegraph.fori_loop(0, n, lambda _, v: a @ v, x)


def test_an_argument_of_a_product_inside_a_loop_is_copied_once_outside():
    square = ArrayType(F64, (64, 64))
    with override(operands="copied"):
        plan = plan_of(power, square, square, ArrayType(np.int64), device="cuda")
    assert next(type(n).__name__ for n in plan.graph.nodes) == "MemcpyNode"
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    assert not any(type(n).__name__ == "MemcpyNode" for n in loop.body.nodes)


def test_a_product_on_the_host_reads_its_arguments_in_place():
    plan = host_plan_of(lambda a, x: a.T @ x, ArrayType(F64, (6, 4)), ArrayType(F64, (6, 3)))
    (node,) = [n for n in plan.graph.nodes if isinstance(n, LibraryNode)]
    assert [array.buffer for array in node.call.inputs] == list(plan.inputs)


def test_small_independent_results_are_one_node():
    plan = host_plan_of(lambda x, y: (x + 1.0, y * 2.0, np.sum(y)), vector(16), vector(32))
    assert kinds(plan) == {"KernelNode": 1}


def test_integer_products_are_kernels():
    square = ArrayType(np.int32, (4, 4))
    plan = host_plan_of(lambda x, y: x @ y, square, square)
    assert kinds(plan) == {"KernelNode": 1}


def test_empty_arrays_need_no_nodes():
    plan = host_plan_of(lambda x: np.sin(x) * 2.0, ArrayType(F64, (0, 3)))
    assert not plan.graph.nodes


def test_a_scatter_into_a_dying_array_copies_nothing():
    def update(x):
        y = np.sin(x)
        y[np.array([0, 3])] = 1.0
        y[np.array([1, 3])] += 2.0
        return y

    plan = host_plan_of(update, vector())
    nests = [n for node in plan.graph.nodes for n in node.kernel.nests]
    assert [n.space for n in nests if isinstance(n, MapNest)].count((8,)) == 1
    assert plan.arena_bytes == 256  # the two updates of +=


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


def test_what_reads_no_rows_joins_them_whether_it_keeps_their_axes():
    """Else the last map would read from two nests of one kernel, and could become part of none."""

    def gated(x, gain):
        total = np.sum(x, axis=1, keepdims=True)
        gain = np.exp(gain)
        y = x / total * gain
        return y - np.max(y, axis=1, keepdims=True) * gain

    plan = host_plan_of(gated, ArrayType(F64, (600, 64)), ArrayType(F64, (600, 1)))
    assert kinds(plan) == {"KernelNode": 1}
    assert plan.arena_bytes == 0


def test_rows_that_are_read_backwards_are_not_joined():
    def backwards(x):
        mean = np.mean(x, axis=1, keepdims=True)
        return x - mean, np.sin(mean[::-1])

    assert kinds(host_plan_of(backwards, ArrayType(F64, (8, 3)))) == {"KernelNode": 2}


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
    nests = [nest for node in plan.graph.nodes for nest in node.kernel.nests]
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


def test_an_update_that_reads_across_memory_is_not_made_by_rows():
    def function(x, y):
        z = x.T + y
        return z, np.sum(z, axis=1)

    types = ArrayType(F32, (2000, 1500)), ArrayType(F32, (1500, 2000))
    assert kinds(host_plan_of(function, *types)) == {"KernelNode": 2}


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


def test_columns_can_be_rows():
    def standardise(x):
        centred = x - np.mean(x, axis=0)
        return centred / np.sqrt(np.mean(centred * centred, axis=0))

    plan = host_plan_of(standardise, ArrayType(F64, (64, 1024)))
    assert kinds(plan) == {"KernelNode": 1}


def test_an_update_and_the_norm_of_its_result_are_one_pass_in_place():
    def damp(x):
        return tracegraph.while_loop(lambda v: np.sum(v * v) > 1.0, lambda v: v * 0.9, x)

    plan = host_plan_of(damp, vector(1 << 20))
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    (node,) = loop.body.nodes
    (nest,) = node.kernel.nests
    assert isinstance(nest, RowNest)
    assert len(nest.passes) == 1
    assert plan.arena_bytes == 8 << 20


def test_a_step_of_conjugate_gradients_is_a_product_and_one_kernel():
    def solve(a, b):
        def step(state):
            x, r, p, rr = state
            ap = a @ p
            alpha = rr / np.sum(p * ap)
            r = r - alpha * ap
            new = np.sum(r * r)
            return x + alpha * p, r, r + new / rr * p, new

        start = (np.zeros_like(b), b, b, np.sum(b * b))
        return tracegraph.while_loop(lambda s: s[3] > 1e-9, step, start)[0]

    plan = host_plan_of(solve, ArrayType(F64, (64, 64)), vector(64))
    (loop,) = [n for n in plan.graph.nodes if isinstance(n, WhileNode)]
    assert [type(n) for n in loop.body.nodes] == [LibraryNode, KernelNode]


def test_stacks_of_a_scan_have_no_value_before_it():
    def run(xs):
        return tracegraph.scan(lambda c, x: (c + x, c * x), 0.0, xs)[1]

    plan = host_plan_of(run, ArrayType(F64, (40,)))
    (loop,) = [node for node in plan.graph.nodes if node.kind == "while"]
    stack = next(b for b in plan.offsets if b.type.shape == (40,))
    position = plan.graph.nodes.index(loop)
    assert all(stack not in node.writes for node in plan.graph.nodes[:position])
