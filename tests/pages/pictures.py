"""Small programs and plans whose pictures are kept in tests/golden.

To draw them again after a change: ``python -m tests.pages.pictures``, then look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tracegraph
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.construct import Construct
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Accumulator, Kernel, MapNest, ReduceNest, SetCondition, Store
from lowering.plan.nodes import Graph, KernelNode, LibraryNode, MemcpyNode
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.scope import Scope
from tracegraph.inspection.svg import svg
from tracegraph.ir.combiners import ADD
from tracegraph.ir.op import get
from tracegraph.ir.program import Program
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, const
from tracegraph.ir.scalar_values import Accumulated, Load, apply
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

GOLDEN = Path(__file__).parents[1] / "golden"

F64 = np.dtype(np.float64)
MATRIX, NUMBER = ArrayType(F64, (4, 6)), ArrayType(F64)
TABLE = np.arange(3.0)


def solver(x: Any, tolerance: Any) -> Any:
    """A loop, a branch, and an array that the function closes over."""

    def is_large(state: Any) -> Any:
        return np.sum(state[0] ** 2) > tolerance

    def halve(state: Any) -> Any:
        return state[0] * 0.5, state[1] + 1

    y, steps = tracegraph.while_loop(is_large, halve, (x, 0))
    return tracegraph.cond(steps > 3, np.sin, lambda v: -v, y) + TABLE, steps


def program() -> Program:
    """The program of the solver."""
    return tracegraph.make_program(solver)(np.ones(3), 0.1)


def plan() -> Plan:
    """A plan with each kind of node, made by hand, so that only drawing can change its picture."""
    x, y = Buffer("input", 0, MATRIX), Buffer("output", 0, MATRIX)
    a, total = Buffer("scratch", 0, MATRIX), Buffer("scratch", 1, NUMBER)
    i, j = Axis.make(0, 4), Axis.make(1, 6)
    line = Source("solver.py", 12, "solve")

    def kernel(name: str, *nests: Any) -> KernelNode:
        return KernelNode(Kernel(f"solve_{name}", nests), (line,))

    element = Load.make(x, (i, j), None)
    sine = apply(get("sin"), (element,), F64, {})
    double = apply(get("multiply"), (sine, const(2.0, F64)), F64, {})
    mapped = MapNest((4, 6), (Store(a, (i, j), double),))
    folded = Accumulator(ADD, Load.make(x, (Axis.make(0, 4), Axis.make(1, 6)), None))
    sum_ = ReduceNest((), (4, 6), (folded,), (Store(total, (), Accumulated.make(0, F64)),))
    condition = MapNest((), (), (SetCondition(0, const(1, np.dtype(np.int64))),))
    step = Graph((kernel("k2_sin", mapped), kernel("k3", condition)), frozenset({(0, 1)}))
    whole = MatrixOperand(x, 0, 0, 6, 1)
    product = MatrixProduct(1, 4, 4, 6, whole, whole, MatrixOperand(a, 0, 0, 4, 1))
    loop = Construct("while_loop", "conditional", "takes any body", max_steps=100)
    inside = Construct("fori_loop", "one_kernel", "small state", steps=10)
    nodes = (
        kernel("k0_sin_multiply", mapped, sum_),
        LibraryNode(product, (line,)),
        WhileNode(0, step, (Source("solver.py", 14, "solve"),), loop),
        PersistentKernelNode(
            "solve_k5_fori_loop",
            Graph((WhileNode(1, step, (line,), inside),), frozenset()),
            Scope(8, 256),
            (line,),
        ),
        IfElseNode(2, Graph((MemcpyNode(y, a, (line,)),), frozenset()), step, (line,)),
        SwitchNode(3, (Graph((), frozenset()), Graph((MemcpyNode(y, x),), frozenset()))),
    )
    edges = frozenset({(0, 2), (0, 3), (1, 3), (2, 4), (3, 4), (1, 5)})
    return Plan("solve", Graph(nodes, edges), (x,), (y,), (), {a: 0, total: 256}, 512, 4)


def launched_plan() -> Plan:
    """The same as a CUDA graph, which loads what it reads, and allocates scratch."""
    work = plan()
    product = work.graph.nodes[1]
    return replace(
        work,
        per_launch=True,
        indirect=(*work.inputs, *work.outputs),
        as_graph=True,
        library_bytes=4096,
        emitted={product: ("memset", "kernel", "kernel")},
    )


PICTURES: Mapping[str, Callable[[], Any]] = {
    "program.svg": program,
    "plan.svg": launched_plan,
    "node.svg": lambda: plan().graph.nodes[0],
}
"""What each file shows."""


def picture(name: str) -> str:
    """The text of a file."""
    return svg(PICTURES[name]().diagram()) + "\n"


if __name__ == "__main__":
    for name in PICTURES:
        (GOLDEN / name).write_text(picture(name), "utf-8")
