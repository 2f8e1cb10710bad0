"""The check that devices meet: no collective stands where devices may go different ways.

A loop that devices may leave at different steps, or a branch that only some of them take, must hold
no collective along the axes over which its condition varies. What is wrong is shown by the shortest
chain of values from one that differs between devices to the condition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from tracegraph import errors
from tracegraph.ir.control_forms import branch_parts, is_loop
from tracegraph.ir.op import Call, Collective
from tracegraph.ir.program import Atom, Eqn, Literal, Region
from tracegraph.ir.varying import Axes, VaryingAxes, axes_of, collectives_in, of_atom, union

Describe = Callable[[int], str]
"""What messages call the parameter of a number."""


def check_uniform(region: Region, sets: Sequence[Axes], describe: Describe) -> None:
    """Check a region of which `sets` are the axes over which parameters vary.

    Raises:
        UniformityError: devices along an axis may go different ways around a collective along it.
    """
    if any(True for _ in collectives_in([region])):
        _Checked(region, sets, describe).check(region, sets)


def chain_of(
    region: Region, sets: Sequence[Axes], describe: Describe, result: Atom, axis: str
) -> list[str]:
    """The lines of the shortest chain of values to a result that varies over an axis."""
    return _Checked(region, sets, describe).chain(result, axis)


class _Checked:
    """A region with the axes of all values in it, and where each value comes from."""

    def __init__(self, region: Region, sets: Sequence[Axes], describe: Describe) -> None:
        self._analysis = VaryingAxes()
        self._origins: dict[Atom, str] = {}
        self._before: dict[Atom, list[Atom]] = {}
        self._made: dict[Atom, Eqn] = {}
        self._sets: dict[Atom, Axes] = {}
        for number, (param, axes) in enumerate(zip(region.params, sets, strict=True)):
            if axes:
                self._origins[param] = describe(number)
        self._enter(region, sets)

    def check(self, region: Region, sets: Sequence[Axes]) -> None:
        """Check the equations of a region, and of those inside."""
        values = self._analysis.values(region, sets)
        for eqn in region.eqns:
            if not eqn.regions:
                continue
            given = tuple([of_atom(values, a) for a in eqn.operands])
            if isinstance(eqn.op.form, Call):
                self.check(eqn.regions[0], self._of_call(eqn, given))
                continue
            if is_loop(eqn):
                inner = self._analysis.operands(eqn, given)
                decides, what = (
                    self._analysis.decides(eqn, inner),
                    "take different numbers of steps",
                )
                condition = eqn.regions[0].results[0]
            else:
                inner, decides = given[1:], given[0]
                condition, what = branch_parts(eqn).selector, "take different branches"
            self._require_uniform(eqn, decides, condition, what)
            for each in eqn.regions:
                self.check(each, inner)

    def _require_uniform(self, eqn: Eqn, decides: Axes, condition: Atom, what: str) -> None:
        for inner in collectives_in(eqn.regions) if decides else ():
            along = sorted(decides & axes_of(inner))
            if along:
                chain = self.chain(condition, along[0])
                raise errors.UniformityError(what, along[0], _where(eqn), _where(inner), chain)

    def chain(self, last: Atom, axis: str) -> list[str]:
        """The shortest chain of values that vary over the axis, from where they begin to `last`."""
        came: dict[Atom, Atom | None] = {last: None}
        rest = deque([last])
        while rest:
            atom = rest.popleft()
            if self._begins(atom, axis):
                return list(self._lines(atom, came))
            for before in self._before.get(atom, ()):
                if before not in came and axis in self._sets.get(before, ()):
                    came[before] = atom
                    rest.append(before)
        return list(self._lines(last, came))

    def _begins(self, atom: Atom, axis: str) -> bool:
        eqn = self._made.get(atom)
        return atom in self._origins or (eqn is not None and axis in axes_of(eqn))

    def _lines(self, atom: Atom | None, came: Mapping[Atom, Atom | None]) -> Iterator[str]:
        shown = ""
        while atom is not None:
            eqn = self._made.get(atom)
            line = self._origins.get(atom) or (_where(eqn) if eqn is not None else "")
            if line and line != shown:
                yield line
                shown = line
            atom = came[atom]

    def _of_call(self, eqn: Eqn, sets: Sequence[Axes]) -> tuple[Axes, ...]:
        """The axes of the parameters of a call's function; of a derivative, those of all."""
        count = len(eqn.regions[0].params)
        return tuple(sets) if count == len(sets) else (union(tuple(sets)),) * count

    def _enter(self, region: Region, sets: Sequence[Axes]) -> None:
        """Note the axes of all values, and what each is computed from."""
        values = self._analysis.values(region, sets)
        for atom, axes in values.items():
            self._sets[atom] = self._sets.get(atom, frozenset()) | axes
        for eqn in region.eqns:
            given = tuple([of_atom(values, a) for a in eqn.operands])
            for output in eqn.outputs:
                self._made[output] = eqn
            if not eqn.regions:
                self._follow(eqn.outputs, eqn.operands)
            elif isinstance(eqn.op.form, Call):
                self._enter_call(eqn, given)
            elif is_loop(eqn):
                self._enter_loop(eqn, given)
            else:
                self._follow(eqn.outputs, eqn.operands[:1])
                for each in eqn.regions:
                    self._link(each.params, eqn.operands[1:])
                    self._link(eqn.outputs, each.results)
                    self._enter(each, given[1:])

    def _enter_call(self, eqn: Eqn, given: tuple[Axes, ...]) -> None:
        function = eqn.regions[0]
        sets = self._of_call(eqn, given)
        self._enter(function, sets)
        if len(function.params) == len(eqn.operands):
            self._link(function.params, eqn.operands)
        if len(function.results) == len(eqn.outputs):
            self._link(eqn.outputs, function.results)
        else:
            self._follow(eqn.outputs, eqn.operands)

    def _enter_loop(self, eqn: Eqn, given: tuple[Axes, ...]) -> None:
        carry, body = eqn.attrs["carry"], eqn.regions[-1]
        inner = self._analysis.operands(eqn, given)
        for each in eqn.regions:
            self._link(each.params, eqn.operands)
            self._link(each.params[:carry], body.results[:carry])
            self._enter(each, inner)
        self._link(eqn.outputs, body.results)
        self._link(eqn.outputs[:carry], eqn.operands[:carry])
        if len(eqn.regions) > 1:
            self._follow(eqn.outputs[:carry], eqn.regions[0].results)

    def _link(self, after: Sequence[Atom], before: Sequence[Atom]) -> None:
        """Each of the first is the one of the second at its place."""
        for one, other in zip(after, before, strict=False):
            self._follow([one], [other])

    def _follow(self, after: Sequence[Atom], before: Sequence[Atom]) -> None:
        """Each of the first depends on all of the second."""
        values = [atom for atom in before if not isinstance(atom, Literal)]
        for atom in after:
            self._before.setdefault(atom, []).extend(values)


def _where(eqn: Eqn) -> str:
    """An equation in a message: the name of its op, and its line."""
    name = eqn.hints.construct or eqn.op.name
    over = ""
    if isinstance(eqn.op.form, Collective):
        over = f" over {' and '.join(map(repr, eqn.attrs['axes']))}"
    place = "" if eqn.source is None else f" at {eqn.source}, in {eqn.source.function}"
    return f"{name}{over}{place}"
