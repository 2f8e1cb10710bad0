"""The table of control flow, to the letter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import tracegraph
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.construct import Construct
from lowering.plan.nodes import Graph
from lowering.plan.reports.explain import explain
from tracegraph import ArrayType

VECTOR = ArrayType("float64", (8,))
NUMBER = ArrayType("int64")


def everything(x, n):
    def step(i, v):
        return tracegraph.cond(i % 2 == 0, np.sin, lambda w: -w, v)

    x = tracegraph.fori_loop(0, 10, step, x)
    x = tracegraph.fori_loop(0, n, lambda i, v: v + i, x)
    x = tracegraph.while_loop(lambda v: np.sum(v) < 9.0, lambda v: v + 1.0, x)
    x = tracegraph.while_loop(
        lambda v: np.sum(v) > 0.0, lambda v: v - 1.0, x, max_steps=100, on_max_steps="stop"
    )
    total, _ = tracegraph.scan(lambda c, y: (np.sin(c + y), c), 0.0, x)
    rows = tracegraph.map(lambda y: y + total, x)
    return tracegraph.switch(n, [lambda v: v, lambda v: v * 2.0, lambda v: v[::-1]], rows)


EXPECTED = """\
everything: 23 nodes, 8 of them conditional
line                construct   steps   schedule      nodes  why
test_explain.py:24  fori_loop   10      WHILE node    4      takes any body
test_explain.py:22    cond      -       IF/ELSE node  1+1    takes any body
test_explain.py:25  fori_loop   ?       WHILE node    2      takes any body
test_explain.py:26  while_loop  ?       WHILE node    1      takes any body
test_explain.py:27  while_loop  <= 100  WHILE node    1      takes any body
test_explain.py:30  scan        8       WHILE node    1      takes any body
test_explain.py:31  map         8       WHILE node    1      takes any body
test_explain.py:32  switch      -       SWITCH node   1+1+1  takes any body"""


def test_every_loop_and_branch_has_a_row():
    plan = tracegraph.jit(everything, device="host").lower(VECTOR, NUMBER).plan
    assert explain(plan) == EXPECTED


def test_the_schedule_and_its_reason_are_those_of_the_node():
    known = Construct("while_loop", "one kernel", "small state", max_steps=7)
    empty = Graph((), frozenset())
    plan = replace(
        tracegraph.jit(lambda x: x, device="host").lower(VECTOR).plan,
        graph=Graph((WhileNode(0, empty, (), known), WhileNode(1, empty)), frozenset()),
    )
    assert explain(plan).splitlines()[2:] == [
        "-     while_loop  <= 7   one kernel  0      small state",
        "-     -           ?      WHILE node  0      -",
    ]


def test_kernels_that_factor_small_matrices_have_rows():
    lowered = tracegraph.jit(np.linalg.cholesky, device="cuda").lower(np.ones((1000, 4, 4)))
    row = lowered.explain().splitlines()[2]
    assert row.split("  ")[1] == "custom kernel small_cholesky_4"
    assert row.endswith("kernel node  1      cholesky of matrices of 4 rows, by one kernel")
