"""Effects: nests that print, check, report progress and call the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lowering.draft.context import number
from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.nests.kernel import (
    CallNest,
    PrintedArray,
    PrintNest,
    Publish,
    Require,
    space_index,
)
from lowering.plan.nodes import HostNode
from lowering.planning.barriers import keep
from lowering.planning.expansion.top_level import in_bodies
from lowering.planning.region_builder import RegionBuilder
from tracegraph.errors import HostCallInBodyError
from tracegraph.ir.program import Atom, Eqn, Program


def debug_print(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest of a print."""
    site = number(builder.context.prints, eqn.attrs["format"])
    printed = tuple([_printed(builder, atom) for atom in _values(builder, eqn)])
    builder.emit(PrintNest((), site, printed))


def debug_callback(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest of a call without an answer."""
    site = number(builder.context.callbacks, eqn.attrs["callback"])
    sent = tuple([_printed(builder, atom) for atom in _values(builder, eqn)])
    builder.emit(CallNest((), site, sent))


def pure_callback(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the nest of a call with an answer, unless that has no elements."""
    results = builder.results(eqn)
    if not any(out.type.size for out in eqn.outputs):
        return
    site = number(builder.context.callbacks, eqn.attrs["callback"])
    sent = tuple([_printed(builder, atom) for atom in eqn.operands])
    builder.emit(CallNest((), site, sent, results=results))


def host_call(builder: RegionBuilder, eqn: Eqn) -> None:
    """Add the node of a C function, behind the values that the equation takes."""
    for atom in _values(builder, eqn):
        keep(builder, atom)
    builder.add(FinishedNode(HostNode(eqn.attrs["call"], builder.sources)))
    builder.context.pass_barrier()


def refuse_host_calls_in_bodies(program: Program) -> None:
    """Check that no branch or loop calls a C function.

    Raises:
        HostCallInBodyError: one does.
    """
    for eqn, construct in in_bodies(program, ["host_call"]):
        raise HostCallInBodyError(eqn.attrs["call"].name, construct, eqn.source)


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
