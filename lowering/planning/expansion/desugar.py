"""Desugaring: control flow becomes the few forms that a graph has.

- *Scan lowering*: `scan` becomes a loop that counts, reads slices of `xs` and writes slices of the
  stacked outputs.
- *Loop rotation*: `while_loop` becomes `rotated_loop`. Its condition is evaluated once before the
  loop, on the first carry, and at the end of the body, on the new carry. Zero iterations stay
  legal, and an inner loop arms its condition anew each time that it is entered.
- *Index clamping*: the index of `switch` is clamped to its branches.
- *Checks end loops*: if a loop runs until data says so, the results of checks inside are carried,
  and it runs only while all have passed. Otherwise an inner loop that ends at its limit of steps
  could keep the loop around it running for ever, and the failure would never be reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph.dtypes import BOOL
from tracegraph.ir.control_forms import branch_parts, is_loop, loop_counts, loop_parts, split
from tracegraph.ir.lane_loops import mask_of_branch, mask_of_lanes
from tracegraph.ir.op import Control, Op
from tracegraph.ir.program import (
    Atom,
    Eqn,
    Literal,
    Program,
    Region,
    Value,
    application,
    has_regions,
)
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType

_COUNTER = ArrayType(np.dtype(np.int64))
_CHECK = ArrayType(BOOL)
_TRUE = Literal.of(True, _CHECK)


def _no_reference(*_: Any, **__: Any) -> Any:
    raise TypeError("rotated_loop exists only while a program is lowered")


rotated_loop = Op(
    name="rotated_loop",
    doc="A loop whose first condition is an operand and whose body yields the next one.",
    type_rule=lambda pred, *types, regions, carry, **known: types[:carry],
    reference=_no_reference,
    form=Control(),
    samples=lambda: (),
)
"""rotated_loop(pred, *init, *captures; carry=n), region body(carry…, captures…) -> (carry…, pred).

The attributes `steps`, the number of iterations, and `max_steps`, a bound, are None if unknown. The
carries at the positions `unset` need no initial value: what is read of them is written before.
`lanes` are the extents of the lanes of a loop that lanes end apart (`ir/lane_loops.py`), or None.
The hint `construct` is the user's name for the loop.
"""


LANES_OF_BRANCH = "lanes"
"""The attribute of a `cond` that each lane could decide for itself: the extents of its lanes."""


def desugar(program: Program) -> Program:
    """The program with `scan`, `while_loop` and `switch` in the forms that a graph has."""
    if not has_regions(program.body):
        return program
    return replace(program, body=_region(program.body))


def _region(region: Region, checked: bool = False) -> Region:
    """The region; a `checked` one has a further result: whether all checks in it have passed."""
    builder = _Builder(checked=checked)
    for eqn in _with_lanes(region.eqns):
        builder.add(eqn)
    results = builder.resolve_all(region.results)
    return Region(
        region.params, tuple(builder.eqns), (*results, builder.passed) if checked else results
    )


def _with_lanes(eqns: Sequence[Eqn]) -> Sequence[Eqn]:
    """The equations; the branches that lanes could decide for themselves say so."""
    if not any(eqn.op.name == "cond" for eqn in eqns):
        return eqns
    made = {value: eqn for eqn in eqns for value in eqn.outputs}
    found = []
    for eqn in eqns:
        mask = mask_of_branch(eqn, made) if eqn.op.name == "cond" else None
        if mask is not None:
            lanes = branch_parts(eqn).captures[mask].type.shape
            eqn = replace(eqn, attrs={**eqn.attrs, LANES_OF_BRANCH: lanes})
        found.append(eqn)
    return found


def _is_data_dependent(eqn: Eqn) -> bool:
    """Whether it is a loop whose number of iterations depends on data."""
    return eqn.op.name == "while_loop" and eqn.attrs.get("trip_count") is None


def _carry_checks(eqn: Eqn, passed: Value) -> Eqn:
    """The loop with a further carry `passed`: whether all checks in its body have passed.

    Its regions have that further result. Conditions contain no checks; they test the carry.
    """
    loop = loop_parts(eqn)
    carry = len(loop.init)

    def inserted(items: Sequence[Any], item: Any) -> tuple[Any, ...]:
        return (*items[:carry], item, *items[carry:])

    regions = []
    for region in eqn.regions:
        inner, before = _Builder(region.eqns), Value(_CHECK)
        *results, now = region.results
        if region is loop.body:
            results[carry:carry] = [inner.emit("logical_and", before, now, origin=eqn)]
        elif _is_data_dependent(eqn):
            results = [inner.emit("logical_and", *results, before, origin=eqn)]
        params = inserted(region.params, before)
        regions.append(Region(params, tuple(inner.eqns), tuple(results)))
    return replace(
        eqn,
        operands=inserted(eqn.operands, _TRUE),
        outputs=inserted(eqn.outputs, passed),
        attrs=loop_counts(eqn, carry + 1, len(loop.xs)),
        regions=tuple(regions),
    )


def _has_check(region: Region) -> bool:
    return any(e.op.name == "require" or any(map(_has_check, e.regions)) for e in region.eqns)


class _Builder:
    """Equations under construction, and the atoms that replace values.

    In a `checked` region, `passed` says whether all checks so far have passed. `empty` are the
    arrays without values.
    """

    def __init__(self, eqns: Sequence[Eqn] = (), checked: bool = False) -> None:
        self.eqns = [*eqns]
        self.renamed: dict[Value, Atom] = {}
        self.checked = checked
        self.passed: Atom = _TRUE
        self.empty: set[Atom] = set()

    def resolve(self, atom: Atom) -> Atom:
        return self.renamed.get(atom, atom) if isinstance(atom, Value) else atom

    def resolve_all(self, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        known = self.renamed
        return tuple([known.get(a, a) if isinstance(a, Value) else a for a in atoms])

    def emit(
        self, name: str, *operands: Atom, origin: Eqn, attrs: Mapping[str, Any] | None = None
    ) -> Value:
        """Append an application of a registered op, with the user's line of `origin`."""
        self.eqns.append(application(name, operands, attrs or {}, origin.source))
        return self.eqns[-1].outputs[0]

    def inline(self, region: Region, operands: Sequence[Atom]) -> tuple[Atom, ...]:
        """Append a region's equations on given operands; its results."""
        inner = _Builder()
        inner.eqns = self.eqns
        inner.renamed = dict(zip(region.params, operands, strict=True))
        for eqn in region.eqns:
            inner.copy(eqn)
        return inner.resolve_all(region.results)

    def copy(self, eqn: Eqn) -> None:
        outputs = tuple([Value(v.type) for v in eqn.outputs])
        self.renamed.update(zip(eqn.outputs, outputs, strict=True))
        operands = self.resolve_all(eqn.operands)
        self.eqns.append(replace(eqn, operands=operands, outputs=outputs))

    def add(self, eqn: Eqn) -> None:
        if not self.renamed.keys().isdisjoint(eqn.operands):
            eqn = replace(eqn, operands=self.resolve_all(eqn.operands))
        if not eqn.regions:
            self.eqns.append(eqn)
            if eqn.op.name == "empty":
                self.empty.update(eqn.outputs)
            if self.checked and eqn.op.name == "require":
                self._require(eqn.operands[1], eqn)
            return
        checked = (self.checked or _is_data_dependent(eqn)) and any(map(_has_check, eqn.regions))
        eqn = replace(eqn, regions=tuple([_region(r, checked) for r in eqn.regions]))
        passed = Value(_CHECK)
        if checked and is_loop(eqn):
            eqn = _carry_checks(eqn, passed)
        elif checked:
            eqn = replace(eqn, outputs=(*eqn.outputs, passed))
        match eqn.op.name:
            case "scan":
                self._scan(eqn)
            case "while_loop":
                self._while_loop(eqn)
            case "switch":
                self._switch(eqn)
            case _:
                self.eqns.append(eqn)
        if self.checked and checked:
            self._require(passed, eqn)

    def _require(self, passed: Atom, eqn: Eqn) -> None:
        passed = self.resolve(passed)
        first = self.passed is _TRUE
        self.passed = passed if first else self.emit("logical_and", self.passed, passed, origin=eqn)

    def _switch(self, eqn: Eqn) -> None:
        parts = branch_parts(eqn)
        index, last = parts.selector, len(parts.branches) - 1
        low, high = (Literal.of(n, index.type.strong()) for n in (0, last))
        index = self.emit("maximum", index, low, origin=eqn)
        index = self.emit("minimum", index, high, origin=eqn)
        self.eqns.append(replace(eqn, operands=(index, *parts.captures)))

    def _while_loop(self, eqn: Eqn) -> None:
        loop = loop_parts(eqn)
        body, condition = loop.body, loop.condition
        assert condition is not None
        (first,) = self.inline(condition, eqn.operands)
        inner = _Builder(body.eqns)
        (again,) = inner.inline(condition, (*body.results, *loop.captured_params))
        rotated = Region(body.params, tuple(inner.eqns), (*body.results, again))
        unset = [i for i, atom in enumerate(loop.init) if atom in self.empty]
        mask = mask_of_lanes(eqn)
        lanes = None if mask is None else loop.init[mask].type.shape
        self._loop(eqn, first, eqn.operands, rotated, eqn.outputs, unset, lanes)

    def _loop(
        self,
        eqn: Eqn,
        first: Atom,
        operands: Sequence[Atom],
        body: Region,
        outputs: tuple[Value, ...],
        unset: Sequence[int],
        lanes: tuple[int, ...] | None = None,
    ) -> None:
        known = eqn.attrs
        attrs = {
            "carry": len(body.results) - 1,
            "unset": tuple(unset),
            "steps": known.get("length", known.get("trip_count")),
            "max_steps": known.get("max_steps"),
            "lanes": lanes,
        }
        hints = replace(eqn.hints, construct=eqn.hints.construct or eqn.op.name)
        operands = (first, *operands)
        self.eqns.append(Eqn(rotated_loop, operands, outputs, attrs, (body,), eqn.source, hints))

    def _scan(self, eqn: Eqn) -> None:
        """The carry is (step, carry…, stacked ys…); captures are the xs and those of the scan."""
        loop, length = loop_parts(eqn), eqn.attrs["length"]
        init, xs, captures = loop.init, loop.xs, loop.captures
        stacked = [v.type for v in loop.stacked]
        if length == 0:  # xs have no slices, not even for a body that never runs
            results = (*init, *(self._filled(t, eqn) for t in stacked))
            self.renamed.update(zip(eqn.outputs, results, strict=True))
            return
        zero, one, end = (Literal.of(n, _COUNTER) for n in (0, 1, length))
        buffers = [self._filled(t, eqn) for t in stacked]

        types = [_COUNTER, *[a.type for a in init], *stacked, *[a.type for a in (*xs, *captures)]]
        params = tuple([Value(t.strong()) for t in types])
        counts = 1, len(init), len(stacked), len(xs)
        (step,), state, ys, x_params, capture_params = split(params, *counts)
        inner = _Builder()
        at: Atom = step
        if eqn.attrs.get("reverse"):
            at = inner.emit("subtract", Literal.of(length - 1, _COUNTER), step, origin=eqn)
        slices = [inner._slice(x, at, zero, eqn) for x in x_params]
        results = inner.inline(loop.body, (*state, *slices, *capture_params))
        carried, yielded = split(results, len(init))
        written = [
            inner._write(buffer, y, at, zero, eqn) for buffer, y in zip(ys, yielded, strict=True)
        ]
        after = inner.emit("add", step, one, origin=eqn)
        again = inner.emit("less", after, end, origin=eqn)
        new = (after, *carried, *written)
        body = Region(params, tuple(inner.eqns), (*new, again))
        first = Literal.of(length > 0, ArrayType(BOOL))
        operands = (zero, *init, *buffers, *xs, *captures)
        outputs = (Value(_COUNTER), *eqn.outputs)
        unset = range(1 + len(init), 1 + len(init) + len(stacked))
        self._loop(eqn, first, operands, body, outputs, unset)

    def _filled(self, type_: ArrayType, eqn: Eqn) -> Value:
        zero = Literal.of(0, ArrayType(type_.dtype))
        return self.emit("broadcast_to", zero, origin=eqn, attrs={"shape": type_.shape})

    def _slice(self, x: Atom, at: Atom, zero: Atom, eqn: Eqn) -> Value:
        shape = x.type.shape[1:]
        starts = (at, *(zero for _ in shape))
        part = self.emit("dynamic_slice", x, *starts, origin=eqn, attrs={"sizes": (1, *shape)})
        return self.emit("reshape", part, origin=eqn, attrs={"shape": shape})

    def _write(self, buffer: Atom, y: Atom, at: Atom, zero: Atom, eqn: Eqn) -> Value:
        shape = y.type.shape
        name = "broadcast_to" if isinstance(y, Literal) else "reshape"
        part = self.emit(name, y, origin=eqn, attrs={"shape": (1, *shape)})
        starts = (at, *(zero for _ in shape))
        return self.emit("dynamic_update_slice", buffer, part, *starts, origin=eqn)
