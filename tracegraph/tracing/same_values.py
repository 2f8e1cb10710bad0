"""Whether two traced values are equal as they are computed alike: `x > 0`, written twice."""

from __future__ import annotations

from typing import Any

from tracegraph.ir.op import Elementwise, Indexed, Opaque, Reduction, Scan, Scatter
from tracegraph.ir.program import Atom, Eqn, Literal, Value
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer

_PURE = (Elementwise, Indexed, Reduction, Scan, Scatter, Opaque)


def are_same(x: Tracer, y: Tracer, trace: Trace) -> bool:
    """Whether two traced values are the same in the region being traced, whatever the arguments."""
    rest = [(_found(_trace_of(x, trace), x), _found(_trace_of(y, trace), y))]
    known = set[tuple[Atom, Atom]]()
    while rest:
        (trace_a, a), (trace_b, b) = rest.pop()
        if a is b or (a, b) in known:
            continue
        known.add((a, b))
        if isinstance(a, Literal) or isinstance(b, Literal):
            if not (isinstance(a, Literal) and isinstance(b, Literal) and _equal(a, b)):
                return False
            continue
        first, second = trace_a.definitions().get(a), trace_b.definitions().get(b)
        if first is None or second is None or not _computes_alike(first, second, a, b):
            return False
        for left, right in zip(first.operands, second.operands, strict=True):
            rest.append((_defining(trace_a, left), _defining(trace_b, right)))
    return True


_Place = tuple[Trace, Atom]


def _trace_of(x: Tracer, trace: Trace) -> Trace:
    return x.owner if isinstance(x.owner, Trace) else trace


def _found(trace: Trace, x: Tracer) -> _Place:
    return _defining(trace, x.atom)


def _defining(trace: Trace, atom: Atom) -> _Place:
    """An atom of a region, and its trace; of one that is captured, those of the outer region."""
    while trace.parent is not None and not isinstance(atom, Literal):
        captured = next((outer for outer, own in trace.captures.items() if own is atom), None)
        if captured is None:
            break
        trace, atom = trace.parent, captured
    return trace, atom


def _computes_alike(first: Eqn, second: Eqn, a: Value, b: Value) -> bool:
    """Whether two equations apply the same pure op to as many operands, for the same result."""
    op = first.op
    return (
        op is second.op
        and isinstance(op.form, _PURE)
        and not op.of_program
        and op.name != "empty"  # whose elements are undefined
        and first.attrs == second.attrs
        and len(first.operands) == len(second.operands)
        and _number(first, a) == _number(second, b)
    )


def _number(eqn: Eqn, value: Value) -> int:
    return next(k for k, output in enumerate(eqn.outputs) if output is value)


def _equal(a: Literal, b: Literal) -> bool:
    x: Any = a.value
    return a.type == b.type and bool(x.tobytes() == b.value.tobytes())
