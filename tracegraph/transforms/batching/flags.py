"""Which values differ between lanes: a dataflow analysis, without recording anything.

A value is batched if one that it is computed from is. The carries of a loop are taken to a fixed
point. Results are remembered by region and flags of its parameters, so that the cost of nested
loops is not a power of their depth.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Call, Collective, Effect
from tracegraph.ir.program import Eqn, Region, Value
from tracegraph.ir.types import ArrayType

Flags = tuple[bool, ...]


class BatchedFlags:
    """The flags of results, remembered. Lanes may have the name of an axis, for collectives."""

    def __init__(self, axis: str | None = None) -> None:
        self.axis = axis
        self._known: dict[tuple[Region, Flags], Flags] = {}

    def results(self, region: Region, flags: Flags) -> Flags:
        """Which results of a region are batched if those parameters are that `flags` says."""
        key = region, flags
        if key not in self._known:
            env = dict(zip(region.params, flags, strict=True))
            for eqn in region.eqns:
                given = tuple([isinstance(a, Value) and env[a] for a in eqn.operands])
                env.update(zip(eqn.outputs, self._outputs(eqn, given), strict=True))
            found = [isinstance(a, Value) and env[a] for a in region.results]
            self._known[key] = tuple(found)
        return self._known[key]

    def _outputs(self, eqn: Eqn, flags: Flags) -> Sequence[bool]:
        if isinstance(eqn.op.form, Effect):
            return (False,)  # tokens
        if isinstance(eqn.op.form, Call):
            return self.call(eqn, flags)
        if not eqn.regions:
            if self.over_lanes(eqn):
                return (eqn.op.form.varies,)  # type: ignore[union-attr]
            return (any(flags),) * len(eqn.outputs)
        if not is_loop(eqn):
            return self.branches(eqn, flags)
        carry, operands = eqn.attrs["carry"], self.loop(eqn, flags)[0]
        return operands[:carry] + self.results(eqn.regions[-1], operands)[carry:]

    def over_lanes(self, eqn: Eqn) -> bool:
        """Whether lanes take the place of the devices of a collective."""
        return isinstance(eqn.op.form, Collective) and self.axis in eqn.attrs["axes"]

    def call(self, eqn: Eqn, flags: Flags) -> Flags:
        """The flags of the results of a call: all are batched, if its rules have to fit."""
        if not has_rules(eqn):
            return self.results(eqn.regions[0], flags)
        return tuple([any(flags) and value.type != TOKEN for value in eqn.outputs])

    def branches(self, eqn: Eqn, flags: Flags) -> Flags:
        """The flags of the results of a cond or switch, from those of its operands."""
        selector, *captures = flags
        each = [self.results(region, tuple(captures)) for region in eqn.regions]
        differs = [any(column) for column in zip(*each, strict=True)]
        return tuple(
            [flag or (selector and value.type.size > 0)
             for flag, value in zip(differs, eqn.outputs, strict=True)]
        )  # fmt: skip

    def loop(self, eqn: Eqn, flags: Flags) -> tuple[Flags, bool]:
        """The flags of a loop's operands at the fixed point, and whether lanes end it apart.

        If they do, carries differ between lanes, but for those without elements, such as tokens.
        """
        carry, body, ends_apart = eqn.attrs["carry"], eqn.regions[-1], False
        while True:
            if len(eqn.regions) > 1 and not ends_apart:
                (ends_apart,) = self.results(eqn.regions[0], flags)
            after = self.results(body, flags)[:carry]
            carried = [
                was or now or (ends_apart and has_elements(value.type))
                for was, now, value in zip(flags, after, eqn.outputs, strict=False)
            ]
            settled = (*carried, *flags[carry:])
            if settled == flags:
                return flags, ends_apart
            flags = settled


def has_rules(call: Eqn) -> bool:
    """Whether a call has regions beside the function itself, which fit it."""
    return len(call.regions) > 1 or call.op.name == "custom_linear"


def has_elements(type_: ArrayType) -> bool:
    """Whether there is anything that could differ: a token has no elements."""
    return type_.size > 0
