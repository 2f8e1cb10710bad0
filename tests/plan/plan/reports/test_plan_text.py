"""Plans and kernels as text."""

from __future__ import annotations

import numpy as np

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    Accumulator,
    Kernel,
    MapNest,
    ReduceNest,
    ScanNest,
    ScatterNest,
    SetCondition,
    Store,
)
from lowering.plan.nests.kernel_text import MAX_NESTING, expr_text, kernel_text
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, MemcpyNode
from lowering.plan.plan import Plan
from lowering.plan.reports.text import plan_text
from tracegraph.ir.combiners import ADD, MAXIMUM
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis, both, clamp, const, select
from tracegraph.ir.scalar_values import Accumulated, Load, apply, as_index, as_value
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
X = Buffer("input", 0, ArrayType(F64, (4, 6)))
N = Buffer("input", 1, ArrayType(np.dtype(np.int64), ()))
Y = Buffer("output", 0, ArrayType(F64, (4, 6)))
A = Buffer("scratch", 0, ArrayType(F64, (4, 6)))
C = Buffer("const", 0, ArrayType(F64, (6,)))
I, J = Axis.make(0, 4), Axis.make(1, 6)
X_IJ = Load.make(X, (I, J), None)


def ap(name, *args, dtype=F64, **attrs):
    return apply(get(name), args, dtype, attrs)


def test_index_expressions():
    assert expr_text(I * 6 - J + 2) == "6*i0 - i1 + 2"
    assert expr_text((I * 5 + J) // 7 * 2) == "2*((5*i0 + i1) // 7)"
    assert expr_text((I * 5 + J) % 7) == "(5*i0 + i1) % 7"
    assert (
        expr_text(clamp(as_index(Load.make(N, (), None)), 0, 3)) == "clamp(index(input[1][]), 0, 3)"
    )
    assert expr_text(both(I - 1 >= 0, I < J)) == "i0 - 1 >= 0 and i0 < i1"


def test_value_expressions():
    assert expr_text(const(1.5, F64)) == "f64(1.5)"
    assert expr_text(as_value(I + 1, F64)) == "f64(i0 + 1)"
    assert expr_text(ap("cast", X_IJ, dtype=F32)) == "cast<f32>(input[0][i0, i1])"
    guarded = Load.make(X, (I - 1, J), I >= 1)
    assert expr_text(guarded) == "(input[0][i0 - 1, i1] if i0 >= 1)"
    choice = select(I >= 1, guarded, const(0.0, F64))
    assert expr_text(choice) == f"select(i0 >= 1, {expr_text(guarded)}, f64(0.0))"


def test_named_expressions_are_printed_by_name():
    assert expr_text(ap("add", X_IJ, X_IJ), {X_IJ: "t0"}) == "add(t0, t0)"


def test_a_deep_expression_is_printed_in_several_lines():
    deep = X_IJ
    for _ in range(5000):
        deep = ap("sin", deep)
    nest = MapNest((4, 6), (Store(Y, (I, J), deep),))
    lines = kernel_text(Kernel("deep", (nest,))).split("\n")
    assert max(line.count("sin") for line in lines) <= MAX_NESTING + 1
    assert sum(line.count("sin") for line in lines) == 5000
    assert lines[3].startswith("    t1 = sin(sin(")
    assert lines[3].endswith("sin(t0" + lines[3].count("sin") * ")")


def test_kernel_with_every_kind_of_nest():
    shared = ap("exp", X_IJ)
    total = Accumulated.make(0, F64)
    kernel = Kernel(
        "all_0",
        (
            MapNest((4, 6), (Store(A, (I, J), ap("add", shared, shared), I >= 1),)),
            ReduceNest(
                (4,),
                (6,),
                (Accumulator(ADD, X_IJ), Accumulator(MAXIMUM, X_IJ, arg=True)),
                (Store(Y, (I, const(0)), total),),
            ),
            ReduceNest(
                (),
                (4, 6),
                (Accumulator(ADD, X_IJ),),
                (),
                (SetCondition(2, ap("less", total, const(1.0, F64), dtype=np.dtype(bool))),),
            ),
            ScanNest((4, 6), 1, ADD, Store(A, (I, J), X_IJ)),
            ScatterNest((4, 6), 0, None, Store(A, (I, J), X_IJ)),
            ScatterNest((4, 6), 1, ADD, Store(A, (I, J), X_IJ)),
            ScatterNest((4, 6), 1, ADD, Store(A, (I, J), X_IJ), any_order=True),
        ),
    )
    assert (
        kernel_text(kernel)
        == """\
kernel all_0
  map [4, 6]
    t0 = exp(input[0][i0, i1])
    scratch[0][i0, i1] = add(t0, t0) if i0 >= 1
  reduce [4] over [6]
    acc0 = add input[0][i0, i1]
    acc1 = arg maximum input[0][i0, i1]
    output[0][i0, 0] = acc0
  reduce [] over [4, 6]
    acc0 = add input[0][i0, i1]
    condition[2] = less(acc0, f64(1.0))
  scan [4, 6] along i1 by add
    scratch[0][i0, i1] = input[0][i0, i1]
  scatter [4, 6]
    scratch[0][i0, i1] = input[0][i0, i1]
  scatter [4, 6] by add, 1 axes in order
    scratch[0][i0, i1] = input[0][i0, i1]
  scatter [4, 6] by add, 1 axes in any order
    scratch[0][i0, i1] = input[0][i0, i1]"""
    )


def copy(target, source, name):
    nest = MapNest((4, 6), (Store(target, (I, J), Load.make(source, (I, J), None)),))
    return KernelNode(Kernel(name, (nest,)), (Source("dir/model.py", 7, "step"),))


def every_kind_of_node():
    empty = Graph((), frozenset())
    body = Graph((MemcpyNode(A, X), copy(Y, A, "c_1")), frozenset({(0, 1)}))
    matrix = MatrixOperand(X, 2, 0, 6, 1)
    nodes = (
        copy(A, X, "c_0"),
        LibraryNode(MatrixProduct(1, 2, 2, 2, matrix, matrix, MatrixOperand(A, 0, 0, 2, 1))),
        IfElseNode(0, body, empty, (Source("model.py", 9, "step"),)),
        SwitchNode(1, (empty, Graph((MemcpyNode(Y, A),), frozenset()))),
        WhileNode(2, body),
    )
    return Plan(
        "step",
        Graph(nodes, frozenset({(0, 1), (0, 2), (1, 2), (2, 4)})),
        (X, N),
        (Y,),
        ((C, np.zeros(6)),),
        {A: 256},
        512,
        3,
    )


def test_reprs_are_lines():
    plan = every_kind_of_node()
    assert repr(plan) == (
        "<Plan step: 10 nodes (3 kernel, 1 library, 1 if_else, 3 copy, 1 switch, 1 while), "
        "512 B scratch>"
    )
    assert [repr(node) for node in plan.graph.nodes] == [
        "<KernelNode kernel c_0, model.py:7>",
        "<LibraryNode matmul 1 x (2, 2) @ (2, 2)>",
        "<IfElseNode if / else, 2 nodes inside, model.py:9>",
        "<SwitchNode switch, 1 node inside>",
        "<WhileNode while, 2 nodes inside>",
    ]


def test_a_node_prints_with_its_bodies():
    kernel, *_, loop = every_kind_of_node().graph.nodes
    assert str(kernel).splitlines()[:2] == ["kernel c_0  # model.py:7", "  map [4, 6]"]
    assert str(loop).splitlines()[:3] == [
        "while condition[2]",
        "body",
        "  0: memcpy scratch[0] = input[0]",
    ]


def test_plan_with_every_kind_of_node():
    plan = every_kind_of_node()
    assert plan_text(plan) == str(plan)
    assert (
        str(plan)
        == """\
plan step {
  input[0]: f64[4,6]
  input[1]: i64[]
  output[0]: f64[4,6]
  const[0]: f64[6]
  scratch[0]: f64[4,6] @ 256
  arena: 512 bytes, conditions: 3
  0: kernel c_0  # model.py:7
      map [4, 6]
        scratch[0][i0, i1] = input[0][i0, i1]
  1: matmul scratch[0]:0,2,1 = input[0]+2:0,6,1 @ input[0]+2:0,6,1  (batch=1, m=2, n=2, k=2) after 0
  2: if condition[0] after 0, 1  # model.py:9
    then
      0: memcpy scratch[0] = input[0]
      1: kernel c_1 after 0  # model.py:7
          map [4, 6]
            output[0][i0, i1] = scratch[0][i0, i1]
    else
  3: switch condition[1]
    case 0
    case 1
      0: memcpy output[0] = scratch[0]
  4: while condition[2] after 2
    body
      0: memcpy scratch[0] = input[0]
      1: kernel c_1 after 0  # model.py:7
          map [4, 6]
            output[0][i0, i1] = scratch[0][i0, i1]
}"""
    )
