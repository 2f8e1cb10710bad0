"""Effects: nests that print, check and report progress."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lowering.draft.context import number
from lowering.plan.kernel import PrintedArray, PrintNest, Publish, Require, space_index
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.program import Atom, Eqn


def debug_print(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest of a print."""
    site = number(builder.context.prints, eqn.attrs["format"])
    printed = tuple([_printed(builder, atom) for atom in _values(builder, eqn)])
    builder.emit(PrintNest((), site, printed))


def require(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest of a check."""
    failure = number(builder.context.failures, eqn.attrs["failure"])
    builder.signal(_values(builder, eqn)[0], partial(Require, failure))


def report_step(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest that reports the progress of a loop."""
    monitor = number(builder.context.monitors, eqn.attrs["monitor"])
    builder.signal(_values(builder, eqn)[0], partial(Publish, monitor))


def _values(builder: RegionBuilder, eqn: Eqn) -> Sequence[Atom]:
    """The operands without the token. The new token has no elements: it is bound as if inlined."""
    (token,) = eqn.outputs
    builder.bindings[token] = eqn
    return eqn.operands[1:]


def _printed(builder: RegionBuilder, atom: Atom) -> PrintedArray:
    shape = atom.type.shape
    return PrintedArray(shape, builder.element(atom, space_index(shape), None))
