"""What a program of each device needs no collective for, and where a device is as an input.

Collectives of what is the same on all devices become arithmetic. In permutations, all devices take
part. The number of a device along each axis becomes an input, so that the program is the same for
all. What is the same on several devices has the same bits: loops that they end together may depend
on it. So updates that combine floats are made in one order there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.op import Collective, Scatter
from tracegraph.ir.program import (
    Atom,
    Eqn,
    Literal,
    Program,
    Region,
    Value,
    application,
    walk,
)
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.ir.varying import Axes, VaryingAxes, axes_of, of_atom
from tracegraph.passes.calls import inline_calls
from tracegraph.passes.rewrite import map_atoms, substitute

AXIS_INDEX = "axis_index"


def for_each_device(
    program: Program, sizes: Mapping[str, int], sets: Sequence[Axes]
) -> tuple[Program, tuple[str, ...]]:
    """The program, with calls inlined, and the axes along which its last inputs say where a device
    is. `sets` are the axes over which parameters vary, and `sizes` the devices along each axis.
    """
    program = inline_calls(program)
    body = _Arithmetic(sizes).region(program.body, tuple(sets))
    names = tuple([name for name in sizes if _uses_index([body], name)])
    indices = {name: Value(_index_type([body], name)) for name in names}
    inputs, constants = body.params[: len(program.inputs)], body.params[len(program.inputs) :]
    body = replace(_with_indices(body, indices), params=(*inputs, *indices.values(), *constants))
    return replace(program, body=body), names


class _Arithmetic:
    """Collectives of what is the same on all devices, without the devices; and updates in order."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._several = frozenset([name for name, size in sizes.items() if size > 1])
        self._analysis = VaryingAxes()

    def region(self, region: Region, sets: tuple[Axes, ...]) -> Region:
        """The region, whose parameters vary over these axes."""
        values = self._analysis.values(region, sets)
        eqns, env = list[Eqn](), dict[Value, Atom]()
        for eqn in region.eqns:
            given = tuple([of_atom(values, a) for a in eqn.operands])
            eqn = substitute(eqn, env)
            if isinstance(eqn.op.form, Collective) and eqn.operands:
                env[eqn.outputs[0]] = self._collective(eqn, given[0], eqns)
            elif eqn.regions:
                inner = self._analysis.operands(eqn, given) if is_loop(eqn) else given[1:]
                regions = tuple([self.region(each, inner) for each in eqn.regions])
                eqns.append(replace(eqn, regions=regions))
            elif _combines(eqn) and self._several - values[eqn.outputs[0]]:
                eqns.append(replace(eqn, hints=replace(eqn.hints, in_order=True)))
            else:
                eqns.append(eqn)
        return Region(region.params, tuple(eqns), tuple(map_atoms(region.results, env)))

    def _collective(self, eqn: Eqn, varying: Axes, eqns: list[Eqn]) -> Atom:
        """The result; over axes along which the operand is the same, by `of_equal`."""
        form, (x,) = eqn.op.form, eqn.operands
        assert isinstance(form, Collective)
        equal = sorted(axes_of(eqn) - varying)

        def emit(name: str, *operands: Atom, **attrs: Any) -> Atom:
            eqns.append(application(name, operands, attrs, eqn.source))
            return eqns[-1].outputs[0]

        if eqn.op.name == "ppermute" and len(eqn.attrs["perm"]) < eqn.attrs["count"]:
            return _with_all_devices(emit, x, eqn.attrs)
        if form.varies or not equal:
            eqns.append(eqn)
            return eqn.outputs[0]
        rest = tuple([name for name in eqn.attrs["axes"] if name not in equal])
        if rest:
            attrs = {**eqn.attrs, "axes": rest, "count": prod(self._sizes[n] for n in rest)}
            x = emit(eqn.op.name, x, **attrs)
        if form.of_equal is not None:
            x = form.of_equal(emit, x, prod(self._sizes[name] for name in equal))
        return x


def _combines(eqn: Eqn) -> bool:
    """Whether an equation updates elements, some of them several times."""
    return isinstance(eqn.op.form, Scatter) and eqn.op.form.combiner is not None


def _with_all_devices(emit: Callable[..., Atom], x: Atom, attrs: Mapping[str, Any]) -> Atom:
    """A permutation in which each device sends and receives: those that must not get zeros."""
    perm, axes, count = attrs["perm"], attrs["axes"], attrs["count"]
    sources, targets = ({pair[i] for pair in perm} for i in range(2))
    idle = ([i for i in range(count) if i not in ends] for ends in (sources, targets))
    whole = (*perm, *zip(*idle, strict=True))
    moved = emit("ppermute", x, axes=axes, count=count, perm=whole)
    index = emit(AXIS_INDEX, axes=axes, count=count)
    few = targets if 2 * len(targets) <= count else set(range(count)) - targets
    found: Atom | None = None
    for number in sorted(few):
        here = emit("equal", index, Literal.of(number, index.type))
        found = here if found is None else emit("logical_or", found, here)
    assert found is not None
    zero = Literal.of(0, ArrayType(x.type.dtype))
    return emit("where", found, *((moved, zero) if few == targets else (zero, moved)))


def _uses_index(regions: Sequence[Region], name: str) -> bool:
    return any(_is_index(e) and e.attrs["axes"] == (name,) for r in regions for e in walk(r))


def _is_index(eqn: Eqn) -> bool:
    return eqn.op.name == AXIS_INDEX


def _index_type(regions: Sequence[Region], name: str) -> ArrayType:
    found = (e for r in regions for e in walk(r) if _is_index(e) and e.attrs["axes"] == (name,))
    return next(found).outputs[0].type


def _with_indices(region: Region, indices: Mapping[str, Value]) -> Region:
    """The region with these values in place of `axis_index`; they are captures of regions inside.

    Values of other axes are not used here.
    """
    eqns, env = list[Eqn](), dict[Value, Atom]()
    for eqn in region.eqns:
        if _is_index(eqn):
            env[eqn.outputs[0]] = indices[eqn.attrs["axes"][0]]
            continue
        eqn = substitute(eqn, env)
        used = [name for name in indices if eqn.regions and _uses_index(eqn.regions, name)]
        if used:
            regions = tuple([_with_parameters(each, indices, used) for each in eqn.regions])
            operands = (*eqn.operands, *[indices[name] for name in used])
            eqn = replace(eqn, operands=operands, regions=regions)
        eqns.append(eqn)
    return Region(region.params, tuple(eqns), tuple(map_atoms(region.results, env)))


def _with_parameters(region: Region, indices: Mapping[str, Value], used: Sequence[str]) -> Region:
    own = {name: Value(indices[name].type) for name in used}
    found = _with_indices(region, own)
    return replace(found, params=(*found.params, *own.values()))
