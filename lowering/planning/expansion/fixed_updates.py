"""Updates at fixed places that combine: what is there is read, combined, and written.

    scatter_add x u   ──▶   scatter_set x (add (slice x) u)      where no index is data

Each element has one update, so that no order matters; as writes, they can be fused with others.
"""

from __future__ import annotations

from tracegraph.ir.program import Eqn, Program, application, walk
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite

_COMBINED = {
    "scatter_add": "add",
    "scatter_multiply": "multiply",
    "scatter_minimum": "minimum",
    "scatter_maximum": "maximum",
}


def write_fixed_updates(program: Program) -> Program:
    """The program without updates at fixed places that combine."""
    if not any(_is_fixed(eqn) for eqn in walk(program.body)):
        return program
    return rewrite(program, lambda: by_name(dict.fromkeys(_COMBINED, _written)))


def _is_fixed(eqn: Eqn) -> bool:
    return eqn.op.name in _COMBINED and len(eqn.operands) == 2


def _written(eqn: Eqn, defs: Defs) -> Replacement | None:
    if not _is_fixed(eqn):
        return None
    x, updates = eqn.operands
    attrs = {**{name: eqn.attrs[name] for name in ("starts", "steps")}, "sizes": updates.type.shape}
    before = application("slice", (x,), attrs, eqn.source)
    combine = _COMBINED[eqn.op.name]
    after = application(combine, (before.outputs[0], updates), {}, eqn.source)
    write = application("scatter_set", (x, after.outputs[0]), eqn.attrs, eqn.source)
    return Replacement(write.outputs, (before, after, write))
