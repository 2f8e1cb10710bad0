"""Evaluation of a program equation by equation, without compiling it: for transforms called
outside of a traced function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.arrays.device_calls import compiled
from tracegraph.arrays.eager import any_on_device, as_numpy, run
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.interpret import run_region
from tracegraph.ir.op import Effect
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.record import replace
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives.linearize import Linearizer


def evaluate(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """The results for these inputs, which are arrays of their own: Arrays if an input is one."""
    as_arrays = any(type(x) is Array for x in inputs)
    env: dict[Atom, Any] = dict(
        zip(program.body.params, (*map(_value, inputs), *program.constants), strict=True)
    )

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    last: dict[Atom, Eqn | None] = {atom: eqn for eqn in program.body.eqns for atom in eqn.operands}
    last.update(dict.fromkeys(program.body.results))
    with np.errstate(all="ignore"):
        for eqn in program.body.eqns:
            env.update(zip(eqn.outputs, _results(eqn, list(map(read, eqn.operands))), strict=True))
            for atom in eqn.operands:
                if last[atom] is eqn and isinstance(atom, Value):
                    env.pop(atom, None)  # its memory is free from here on
    return [_own(read(atom), as_arrays) for atom in program.outputs]


def _value(x: Any) -> Any:
    """An input of the type that its parameter has: it is strong."""
    if type(x) is Array:
        if x.weak:
            return Array(np.asarray(x.item()))
        return x.kept()  # by derivatives
    return np.asarray(x)


def _results(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    if isinstance(eqn.op.form, Effect):
        return (eqn.op.reference(*map(as_numpy, operands), **eqn.attrs),)
    if not eqn.regions:
        if eqn.op.name == "cast" and getattr(operands[0], "dtype", None) == eqn.attrs["dtype"]:
            return (operands[0],)  # of a number that was weak
        found = run(eqn.op, operands, eqn.attrs)
        return found if isinstance(found, tuple) else (found,)
    if any_on_device(operands):
        return _on_device(eqn, operands)
    results = run_region(_alone(eqn), list(map(as_numpy, operands)))
    if any(type(x) is Array for x in operands):
        return [Array.sharing(x) for x in results]
    return results


def _alone(eqn: Eqn) -> Region:
    """A region of this equation alone."""
    params = tuple(Value(a.type) for a in eqn.operands)
    return Region(params, (replace(eqn, operands=params),), eqn.outputs)


def _on_device(eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    """Loops and branches run on a device as a program of their own, with their effects."""
    once = _alone(eqn)
    token = np.zeros(TOKEN.shape, TOKEN.dtype)

    def program(*values: Any) -> Any:
        trace, given = current_trace(), iter(values)
        assert trace is not None
        args = [trace.token() if a.type == TOKEN else next(given) for a in eqn.operands]
        args = [Tracer(trace, x) if isinstance(x, Value) else x for x in args]
        results, _ = Linearizer(trace, trace).run(once, args, [None] * len(args))
        found = []
        for result in results:
            if result.type == TOKEN:
                trace.last_token = result
            else:
                found.append(result)
        return tuple(found)

    inputs = [x for x, a in zip(operands, eqn.operands, strict=True) if a.type != TOKEN]
    results = iter(compiled(program)(*inputs))
    return [token if v.type == TOKEN else next(results) for v in eqn.outputs]


def _own(x: Any, as_array: bool) -> Any:
    """A result that shares no memory with an input, or with another result."""
    if type(x) is Array and not isinstance(x.data, np.ndarray):
        return x
    array = np.array(as_numpy(x))
    if as_array:
        return Array.sharing(array)
    return array if array.ndim else array[()]
