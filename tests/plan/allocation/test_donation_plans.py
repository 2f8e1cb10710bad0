"""Which outputs are planned over donated inputs, and what those plans are."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.legalization.pointer_table import bound_in_bodies, with_pointer_table
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.analysis import nest_writes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import LibraryNode, MemcpyNode, walk
from lowering.plan.plan import Donation, Plan
from lowering.plan.reports.explain import explain
from lowering.plan.target.overrides import override
from tracegraph import ArrayType, tree

VECTOR = ArrayType("float64", (8,))
MATRIX = ArrayType("float64", (8, 8))
SQUARE = ArrayType("float64", (64, 64))  # products of these are library calls
COUNT = ArrayType("int64")


def plan_of(function: Any, *types: ArrayType, donated: Any = 0, device: str = "host") -> Plan:
    jitted = tracegraph.jit(function, donate_argnums=donated, device=device)
    plan: Plan = jitted.lower(*types).plan
    return plan


def halve(x: Any, n: Any) -> Any:
    return tracegraph.while_loop(lambda c: c[1] > 0, lambda c: (c[0] * 0.5, c[1] - 1), (x, n))


def test_a_carry_lives_in_the_argument_and_is_copied_neither_in_nor_out() -> None:
    plan = plan_of(halve, VECTOR, COUNT, donated=(0, 1))
    text = "\n".join(line.partition("  #")[0] for line in str(plan).splitlines())
    assert (
        text
        == """\
plan halve {
  input[0]: f64[8]
  input[1]: i64[]
  output[0]: f64[8] = input[0]
  output[1]: i64[] = input[1]
  arena: 0 bytes, conditions: 1
  0: kernel halve_k0_greater
      map []
        condition[0] = greater(input[1][], 0)
  1: while condition[0] after 0
    body
      0: kernel halve_k1_subtract_greater_multiply
          map []
            t0 = subtract(input[1][], 1)
            input[1][] = t0
            condition[0] = greater(t0, 0)
          map [8]
            input[0][i0] = multiply(input[0][i0], f64(0.5))
}"""
    )
    undonated = plan_of(halve, VECTOR, COUNT, donated=())
    assert len(plan.graph.nodes) == len(undonated.graph.nodes) - 1
    assert undonated.arena_bytes > 0
    assert undonated.aliases == {}


def test_each_result_takes_the_argument_that_it_begins_as() -> None:
    plan = plan_of(lambda a, b: (b, a), VECTOR, VECTOR, donated=(0, 1))
    assert plan.aliases == {0: 1, 1: 0}
    assert plan.graph.nodes == ()


def test_one_argument_holds_one_result() -> None:
    plan = plan_of(lambda x: (x, x), VECTOR)
    assert plan.aliases == {0: 0}
    assert len(plan.graph.nodes) == 1


def test_an_update_writes_only_what_it_changes() -> None:
    plan = plan_of(lambda x, i: x.at[i].set(1.0), VECTOR, COUNT)
    assert plan.aliases == {0: 0}
    (node,) = plan.graph.nodes
    assert [nest.space for nest in node.kernel.nests] == [()]


def test_a_branch_that_keeps_its_argument_does_nothing() -> None:
    def damp(p: Any, x: Any) -> Any:
        return tracegraph.cond(p > 0, lambda x: x * 0.5, lambda x: x, x)

    plan = plan_of(damp, COUNT, VECTOR, donated=1)
    assert plan.aliases == {0: 1}
    _, branch = plan.graph.nodes
    assert len(branch.then.nodes) == 1
    assert branch.otherwise.nodes == ()


def test_what_is_still_read_is_not_overwritten() -> None:
    plan = plan_of(lambda x: x[::-1] + 1, VECTOR)
    assert plan.aliases == {}
    why = "it is read after outputs of its type are written"
    assert plan.donations == (Donation(0, None, why),)


def test_a_carry_whose_first_value_is_still_read_has_memory_of_its_own() -> None:
    plan = plan_of(lambda x: tracegraph.fori_loop(0, 3, lambda i, c: c + x, x), VECTOR)
    loop = next(node for node in plan.graph.nodes if isinstance(node, WhileNode))
    assert plan.inputs[0] not in written(*loop.body.nodes)
    assert plan.aliases == {0: 0}
    assert plan.inputs[0] in written(plan.graph.nodes[-1])


def written(*nodes: Any) -> set[Buffer]:
    return {b for node in nodes for nest in node.kernel.nests for b in nest_writes(nest)}


def test_a_reader_comes_before_what_overwrites() -> None:
    large = ArrayType("float64", (1 << 17,))  # too large for both to be one kernel
    plan = plan_of(lambda x: (x[:0:-1] * 3, x * 2), large)
    reader, writer = plan.graph.nodes
    assert plan.aliases == {1: 0}
    assert written(reader) == {plan.outputs[0]}
    assert written(writer) == {plan.inputs[0]}
    assert plan.graph.edges == {(0, 1)}


def test_library_calls_keep_their_fixed_memory() -> None:
    def powers(a: Any, x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, c: a @ c, x)

    with override(operands="copied"):
        plan = plan_of(powers, SQUARE, SQUARE, donated=1, device="cuda")
    assert plan.aliases == {0: 1}
    products = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    assert products
    for node in products:
        for operand in node.call.operands:
            assert operand.buffer.space == "scratch"


def test_products_that_find_their_matrices_by_pointer_work_on_the_donated_argument() -> None:
    def powers(a: Any, x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, c: a @ c, x)

    with override(operands="in_place", loops="conditional"):
        plan = plan_of(powers, SQUARE, SQUARE, donated=1, device="cuda")
    assert plan.aliases == {0: 1}
    products = [node for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    assert {plan.inputs[0], plan.inputs[1]} <= {b for p in products for b in p.accessed_buffers}
    assert not [node for node in walk(plan.graph) if isinstance(node, MemcpyNode)]


def test_a_product_reads_the_argument_before_it_is_overwritten() -> None:
    with override(operands="copied"):
        plan = plan_of(lambda a, x: a @ x + x, SQUARE, SQUARE, donated=1, device="cuda")
    assert plan.aliases == {0: 1}
    copies = [n for n in plan.graph.nodes if isinstance(n, MemcpyNode)]
    assert {copy.source_buffer for copy in copies} == set(plan.inputs)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, x: (x + 1, a @ x),
        lambda a, x: a @ x + x,
        lambda a, x: (a * 2, x * 3, a @ x, x @ a),
    ],
)
@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
def test_on_the_host_a_product_reads_the_argument_itself_in_time(function, donated) -> None:
    a, x = np.random.default_rng(0).random((2, 32, 32))
    plan = plan_of(function, *[ArrayType("float64", (32, 32))] * 2, donated=donated)
    assert plan.aliases
    expected = tree.leaves(function(a, x))
    for seed in range(8):
        results = HostExecutable(plan, poison=True, order=Random(seed))([a.copy(), x.copy()])
        for found, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(found, wanted)


def test_explain_and_memory_tell_what_became_of_donations() -> None:
    def step(x: Any, y: Any, n: Any) -> Any:
        return x + y, n.astype(float)

    plan = plan_of(step, VECTOR, VECTOR, COUNT, donated=(0, 1, 2))
    assert explain(plan).splitlines()[1:] == [
        "donated input[0] f64[8]: overwritten by output[0]",
        "donated input[1] f64[8]: not overwritten: all outputs of its type are written over other "
        "arguments",
        "donated input[2] i64[]: not overwritten: no output is of its type",
    ]
    lowered = tracegraph.jit(step, donate_argnums=0).lower(VECTOR, VECTOR, COUNT)
    assert lowered.memory["outputs"] == 8
    assert lowered.bytes == 64 + 64 + 8 + 8


def test_where_bodies_take_no_updates_the_argument_is_in_the_table() -> None:
    plan = plan_of(halve, VECTOR, COUNT, donated=(0, 1))
    assert set(bound_in_bodies(plan)) == set(plan.inputs)
    indirect = with_pointer_table(plan)
    assert set(indirect.indirect) == set(plan.inputs)
    assert indirect.aliases == plan.aliases


def test_a_graph_without_nodes_runs() -> None:
    swap = tracegraph.jit(lambda a, b: (b, a), donate_argnums=(0, 1), device="host")
    first, second = swap(tracegraph.asarray([1.0]), tracegraph.asarray([2.0]))
    np.testing.assert_array_equal([first, second], [[2.0], [1.0]])


def test_what_is_made_of_a_carry_or_of_an_update_replaces_it() -> None:
    def normalized(x: Any, n: Any) -> Any:
        y, _ = halve(x, n)
        return y / np.sqrt((y * y).sum())

    def update(x: Any, i: Any) -> Any:
        return x.at[i].set(1.0) * 2

    for function in (normalized, update):
        plan = plan_of(function, VECTOR, COUNT)
        assert plan.aliases == {0: 0}
        assert all(buffer.type != VECTOR for buffer in plan.offsets)


def test_what_is_read_elsewhere_later_is_not_replaced() -> None:
    def mirrored(x: Any, i: Any) -> Any:
        y = x.at[i].set(1.0)
        return y * y[::-1]

    plan = plan_of(mirrored, VECTOR, COUNT)
    assert [buffer.type for buffer in plan.offsets] == [VECTOR]


def test_states_of_one_type_keep_their_places() -> None:
    def step(*state: Any) -> Any:
        return tuple(x * 2 + state[0] for x in state)

    plan = plan_of(step, *[VECTOR] * 40, donated=range(40))
    assert plan.aliases == {number: number for number in range(40)}
