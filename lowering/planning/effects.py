"""Effects: nests that print, check and report progress."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lowering.plan.kernel import PrintedArray, PrintNest, Publish, Require
from lowering.planning.context import number
from lowering.planning.stage import space_index
from tracegraph.ir.program import Atom, Eqn

if TYPE_CHECKING:
    from lowering.planning.region_builder import RegionBuilder


def effect(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest of an effect. Its token has no elements: it is bound like an inlined value."""
    (token,) = eqn.outputs
    builder.bindings[token] = eqn
    _, *values = eqn.operands
    context = builder.context
    match eqn.op.name:
        case "debug_print":
            site = number(context.prints, eqn.attrs["format"])
            printed = tuple([_printed(builder, atom) for atom in values])
            builder.emit(PrintNest((), site, printed))
        case "require":
            failure = number(context.failures, eqn.attrs["failure"])
            builder.signal(values[0], partial(Require, failure))
        case "report_step":
            monitor = number(context.monitors, eqn.attrs["monitor"])
            builder.signal(values[0], partial(Publish, monitor))


def _printed(builder: RegionBuilder, atom: Atom) -> PrintedArray:
    shape = atom.type.shape
    return PrintedArray(shape, builder.element(atom, space_index(shape), None))
