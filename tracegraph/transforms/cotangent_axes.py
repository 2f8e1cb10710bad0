"""Over which axes of devices values differ where an equation uses them, for its transpose.

A value that is the same on all devices may meet others that differ: its cotangent there is a part,
and the parts of all devices are summed. `varying` has the axes over which the values of a region
differ; it is None where no axis of devices has a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.op import Collective, Control
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ir.varying import EQUAL, Axes, Sets, VaryingAxes, axes_of, of_atom, union

Varying = Mapping[Atom, Axes] | None


def inside(eqn: Eqn, varying: Varying) -> tuple[Sets | None, Sets | None]:
    """The axes over which parameters and results of an equation's regions vary.

    Where devices part in it, all parameters count as different.
    """
    if varying is None:
        return None, None
    sets = tuple([of_atom(varying, a) for a in eqn.operands])
    outputs = tuple([varying[v] for v in eqn.outputs])
    if not isinstance(eqn.op.form, Control):
        return sets, outputs
    if not is_loop(eqn):
        return tuple([axes | sets[0] for axes in sets[1:]]), outputs
    analysis = VaryingAxes()
    inner = analysis.operands(eqn, sets)
    decides = analysis.decides(eqn, inner)
    return tuple([axes | decides for axes in inner]), outputs


def of_system(eqn: Eqn, unknowns: int, varying: Varying) -> Sets:
    """The axes over which the unknowns of a linear system vary, and what it captures."""
    if varying is None:
        return ()
    sets = [of_atom(varying, a) for a in eqn.operands]
    solved = union(tuple([varying[v] for v in eqn.outputs]))
    return (*[solved] * unknowns, *sets[unknowns:])


def meets_of(eqn: Eqn, varying: Mapping[Atom, Axes]) -> Sequence[Axes]:
    """For each operand, the axes over which it varies where the equation uses it."""
    count = len(eqn.operands)
    if isinstance(eqn.op.form, Control) or eqn.op.name == "checkpoint":
        params, _ = inside(eqn, varying)
        assert params is not None
        return [EQUAL] * (count - len(params)) + list(params)
    if eqn.op.name == "custom_linear":
        return _of_backward_rule(eqn, varying)
    atoms = eqn.outputs if eqn.op.name == "linear_solve" else eqn.operands
    given = union(tuple([of_atom(varying, a) for a in atoms]))
    if isinstance(eqn.op.form, Collective):
        given |= axes_of(eqn)
    return [given] * count


def _of_backward_rule(eqn: Eqn, varying: Mapping[Atom, Axes]) -> Sequence[Axes]:
    """What a rule returns may be summed over devices already: it goes by the rule itself."""
    count, kept = eqn.attrs["tangents"], eqn.attrs["residuals"]
    sets = [of_atom(varying, a) for a in eqn.operands[count:]]
    outputs = [varying[v] for v in eqn.outputs]
    found = VaryingAxes().results(eqn.regions[-1], [*sets[:kept], *outputs, *sets[kept:]])
    return [*found, *sets]
