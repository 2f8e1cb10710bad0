"""Passes: Program -> Program, with the same results bit for bit.

`optimize` applies them, until none changes the program. May import `ir/` only.

    rewrite     the walk that passes share: a rule for single equations
    simplify    algebraic simplification         fold   constant folding
    single_device   collectives of a device that is alone
    cse         common subexpressions            dce    dead code
    views       composition of views
    captures    loop-invariant carries, repeated captures
    inline      branches and loops decided while compiling
    hoist       loop-invariant code motion       invariants   what moves
    once        what branches in loops compute alike: the first time, and then kept
    live_lanes  marks of lanes that run for nothing; not among those that `optimize` applies
    calls       functions with derivative rules in place of their calls; for lowering, at the end
    devices     programs of each device of a mesh; not among those that `optimize` applies
"""

from collections.abc import Callable, Collection
from functools import partial

from tracegraph.ir.barriers import has_barriers, is_in_argument
from tracegraph.ir.program import Eqn, Program, Region, has_regions
from tracegraph.passes.calls import inline_calls as inline_calls
from tracegraph.passes.captures import tidy_captures as tidy_captures
from tracegraph.passes.cse import cse as cse
from tracegraph.passes.cse import new_cse_rule
from tracegraph.passes.dce import dce as dce
from tracegraph.passes.devices import for_each_device as for_each_device
from tracegraph.passes.fold import fold as fold
from tracegraph.passes.fold import fold_rule
from tracegraph.passes.hoist import hoist as hoist
from tracegraph.passes.inline import inline as inline
from tracegraph.passes.invariants import CERTAIN
from tracegraph.passes.invariants import Motion as Motion
from tracegraph.passes.live_lanes import with_dead_lanes_isolated as with_dead_lanes_isolated
from tracegraph.passes.live_lanes import without_marks as without_marks
from tracegraph.passes.rewrite import Defs, Replacement, Rule, by_name, in_turn, rewrite
from tracegraph.passes.simplify import simplify as simplify
from tracegraph.passes.simplify import simplify_rules
from tracegraph.passes.single_device import single_device_rules
from tracegraph.passes.views import compose_rules
from tracegraph.passes.views import compose_views as compose_views


def optimize(
    program: Program, settled: Collection[Region] = (), *, is_traced: bool = False
) -> Program:
    """The program with all passes applied until none changes it: one exposes work for another.

    The regions that are `settled` are known to stay as they are: those of an optimized program.
    If what is around it `is_traced` yet, collectives of a device that is alone stay: what is the
    same on all devices is found out by them.

    >>> from tracegraph.ir.program import Region, Value
    >>> from tracegraph.ir.types import ArrayType
    >>> x = Value(ArrayType("float64", (8,)))
    >>> print(optimize(Program("same", Region((x,), (), (x,)))))
    program same(a: f64[8]) {
      return a
    }
    """
    if not settled:
        program = dce(program)
    new_rule = partial(_new_rule, _rules_of_traced if is_traced else _rules)
    if has_barriers(program):
        new_rule = partial(_keeping_copies, new_rule)
    tidied, inlined, hoisted, ruled = (set(settled) for _ in range(4))
    while True:
        before = program
        nested = has_regions(program.body)
        if nested:
            program = inline(tidy_captures(program, tidied), inlined)
            program = hoist(program, CERTAIN, hoisted)
        program = rewrite(program, new_rule, settled=ruled)
        if program is not before:
            program = dce(program)
        # Without regions one walk is enough: operands are final before a rule sees them.
        if program is before or not nested:
            return program


def _new_rule(by_op: Rule) -> Rule:
    """The rules for single equations, applied by one walk."""
    return in_turn(fold_rule, by_op, new_cse_rule())


def _keeping_copies(new_rule: Callable[[], Rule]) -> Rule:
    """The same for programs with barriers. A value is not replaced by an argument, nor by a view of
    one: behind a barrier, that may have other elements.
    """
    rule = new_rule()

    def keeping_copies(eqn: Eqn, defs: Defs) -> Replacement | None:
        found = rule(eqn, defs)
        if found is None or eqn.op.is_view:
            return found
        made = {value: new for new in found.eqns for value in new.outputs}
        return None if any(is_in_argument(a, made, defs) for a in found.atoms) else found

    return keeping_copies


# no op twice
_rules_of_traced = by_name({**simplify_rules, **compose_rules})
_rules = by_name({**simplify_rules, **compose_rules, **single_device_rules})
