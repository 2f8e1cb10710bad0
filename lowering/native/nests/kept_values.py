"""Values that one pass over a row computes and later ones need, such as exp of a softmax."""

from __future__ import annotations

from math import prod

from lowering.native.nests.loops import position_of
from lowering.native.nests.points import NativeNestWriter
from lowering.native.schedule import NestLoop
from lowering.native.types import memory_parts
from lowering.plan.nests.kernel import Pass, RowNest
from tracegraph.ir.op import Elementwise
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Apply
from tracegraph.ir.subexpressions import subexpressions

LEAST_COST = 8
"""Cost of an op, in units of `Elementwise.cost`, from which a value is kept: a load is cheaper."""

LONGEST = 1 << 13
"""Steps of a row whose values are kept: they stay in the nearest cache."""

MOST = 2
"""Values of a row that are kept: they are in the frame, and the stack of a thread may be small."""


class KeptValues:
    """The values of a row that are kept, and those that earlier passes have stored."""

    def __init__(
        self, writer: NativeNestWriter, nest: RowNest, loops: tuple[NestLoop, ...]
    ) -> None:
        self._writer, self._loops = writer, loops
        self._steps = prod([loop.extent for loop in loops])
        self._by_pass = shared_values(nest) if self._steps <= LONGEST else [[] for _ in nest.passes]
        self._stored: dict[Expr, str] = {}
        self._pass = 0

    def begin_row(self) -> None:
        """Another row begins: nothing is stored."""
        self._stored.clear()
        self._pass = 0

    def end_pass(self) -> None:
        """The pass is over, and what it has stored may be read."""
        for expr in self._by_pass[self._pass]:
            self._stored.setdefault(expr, self._row(expr))
        self._pass += 1

    @property
    def are_pending(self) -> bool:
        """Whether this pass has values to store."""
        return any(expr not in self._stored for expr in self._by_pass[self._pass])

    def load(self) -> None:
        """Make the values known, at a step, that earlier passes have stored."""
        writer, run = self._writer.writer, self._writer.run
        for expr in self._by_pass[self._pass]:
            if expr in self._stored:
                (type_,) = memory_parts(expr.dtype)
                place = run.index(position_of(self._loops))
                run.values[expr] = (
                    writer.load(type_, writer.element(type_, self._stored[expr], place)),
                )

    def store(self) -> None:
        """Store the values, at a step, that later passes read."""
        writer, run = self._writer.writer, self._writer.run
        for expr in self._by_pass[self._pass]:
            if expr not in self._stored:
                (type_,) = memory_parts(expr.dtype)
                place = run.index(position_of(self._loops))
                target = writer.element(type_, self._row(expr), place)
                writer.store(type_, run.value(expr)[0], target)

    def _row(self, expr: Expr) -> str:
        each = list(dict.fromkeys(e for found in self._by_pass for e in found))
        # one type for all nests, so that these have the same memory
        return self._writer.writer.shared(f"[{LONGEST} x double]", LONGEST + each.index(expr))


def shared_values(nest: RowNest) -> list[list[Expr]]:
    """By pass, the expensive values at each step that several passes need, `MOST` of them.

    Values inside of others that are shared are not needed besides.
    """
    found = [_expensive(each) for each in nest.passes]
    uses = [expr for each in found for expr in each]
    shared = {expr for expr in uses if uses.count(expr) > 1}
    inside = {e for expr in shared for e in subexpressions((expr,)) if e is not expr}
    kept = [expr for expr in dict.fromkeys(uses) if expr in shared and expr not in inside][:MOST]
    return [[expr for expr in each if expr in kept] for each in found]


def _expensive(pass_: Pass) -> list[Expr]:
    if any(accumulator.arg for accumulator in pass_.accumulators):
        return []
    roots = [a.value for a in pass_.accumulators] + [store.value for store in pass_.stores]
    return [expr for expr in subexpressions(tuple(roots)) if _is_kept(expr)]


def _is_kept(expr: Expr) -> bool:
    if not isinstance(expr, Apply) or expr.dtype.kind != "f" or expr.dtype.itemsize == 2:
        return False
    form = expr.op.form
    return isinstance(form, Elementwise) and form.cost >= LEAST_COST
