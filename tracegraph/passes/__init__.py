"""Passes: Program -> Program, each giving the same results bit for bit."""

from tracegraph.ir import Program
from tracegraph.passes.captures import tidy_captures
from tracegraph.passes.cse import cse
from tracegraph.passes.dce import dce
from tracegraph.passes.fold import fold
from tracegraph.passes.inline import inline
from tracegraph.passes.simplify import simplify
from tracegraph.passes.views import compose_views

__all__ = [
    "compose_views",
    "cse",
    "dce",
    "fold",
    "inline",
    "optimize",
    "simplify",
    "tidy_captures",
]


def optimize(program: Program) -> Program:
    """The program with all passes applied, twice: what one exposes, another may use.

    >>> from tracegraph.ir import Region, Value
    >>> from tracegraph.types import ArrayType
    >>> x = Value(ArrayType("float64", (8,)))
    >>> print(optimize(Program("same", Region((x,), (), (x,)))))
    program same(a: f64[8]) {
      return a
    }
    """
    for _ in range(2):
        for apply in (dce, fold, tidy_captures, inline, simplify, compose_views, cse):
            program = apply(program)
    return dce(program)
