"""Passes: Program -> Program, each giving the same results bit for bit."""

from tracegraph.ir.program import Program, Region, has_regions
from tracegraph.passes.captures import tidy_captures
from tracegraph.passes.cse import cse, new_cse_rule
from tracegraph.passes.dce import dce
from tracegraph.passes.fold import fold, fold_rule
from tracegraph.passes.inline import inline
from tracegraph.passes.rewrite import Rule, by_name, in_turn, rewrite
from tracegraph.passes.simplify import simplify, simplify_rules
from tracegraph.passes.views import compose_rules, compose_views

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
    """The program with all passes applied, as often as they change it: what one exposes, another
    may use.

    >>> from tracegraph.ir import Region, Value
    >>> from tracegraph.types import ArrayType
    >>> x = Value(ArrayType("float64", (8,)))
    >>> print(optimize(Program("same", Region((x,), (), (x,)))))
    program same(a: f64[8]) {
      return a
    }
    """
    program = dce(program)
    tidied: set[Region] = set()
    inlined: set[Region] = set()
    ruled: set[Region] = set()
    while True:
        before = program
        nested = has_regions(program.body)
        if nested:
            program = inline(tidy_captures(program, tidied), inlined)
        program = rewrite(program, _new_rule, settled=ruled)
        if program is not before:
            program = dce(program)
        # what has no regions is done: a rule sees operands that all rules have been applied to
        if program is before or not nested:
            return program


def _new_rule() -> Rule:
    """The rules for single equations, so that one walk applies them all."""
    return in_turn(fold_rule, _rule_by_name, new_cse_rule())


_rule_by_name = by_name({**simplify_rules, **compose_rules})  # they are for different ops
