"""Algebraic simplification: identities, involutions, powers that are cheaper ops, known windows,
folds of one element.

Only what is exact in floating point: x * 1 is x, but x + 0 is 0.0 for -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.op import get
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Value, application
from tracegraph.ir.record import replace
from tracegraph.passes.folds_of_one import fold_of_one_rules
from tracegraph.passes.rewrite import Defs, Replacement, Rule, by_name, producer, rewrite


def simplify(program: Program) -> Program:
    """The program without ops that return an operand, and without such powers."""
    return rewrite(program, lambda: by_name(simplify_rules))


def _is(atom: Atom, value: float) -> bool:
    """Whether an atom is a literal of exactly this value's bits, in its own dtype."""
    if not isinstance(atom, Literal):
        return False
    return bool(atom.value.tobytes() == atom.type.dtype.type(value).tobytes())


def _difference(eqn: Eqn, defs: Defs) -> Replacement | None:
    x, y = eqn.operands
    return Replacement((x,)) if _is(y, 0) else None


def _product(eqn: Eqn, defs: Defs) -> Replacement | None:
    """A complex product by 1 + 0i is kept: it makes NaNs of infinities."""
    x, y = eqn.operands
    if x.type.dtype.kind == "c":
        return None
    if x is y:
        return _power_of_norm(eqn, 2.0, defs)
    return Replacement((x,)) if _is(y, 1) else Replacement((y,)) if _is(x, 1) else None


def _quotient(eqn: Eqn, defs: Defs) -> Replacement | None:
    x, y = eqn.operands
    return Replacement((x,)) if _is(y, 1) and x.type.dtype.kind != "c" else None


def _sum(eqn: Eqn, defs: Defs) -> Replacement | None:
    x, y = eqn.operands
    if x.type.dtype.kind == "c":
        return None
    zero = 0 if x.type.dtype.kind in "biu" else -0.0
    return Replacement((x,)) if _is(y, zero) else Replacement((y,)) if _is(x, zero) else None


def _power(eqn: Eqn, defs: Defs) -> Replacement | None:
    """NumPy's powers take the same shortcuts, but not for roots of 16-bit floats: of minus
    infinity, the power is infinity and the root NaN.
    """
    x, y = eqn.operands
    real = x.type.dtype.kind == "f"
    if not real and x.type.dtype.kind not in "iu":
        return None
    if _is(y, 1):
        return Replacement((x,))
    if real and isinstance(y, Literal) and float(y.value) > 1:
        found = _power_of_norm(eqn, float(y.value), defs)
        if found is not None:
            return found
    if _is(y, 2):
        return _unary("square", eqn)
    if real and _is(y, -1):
        return _unary("reciprocal", eqn)
    if real and _is(y, 0.5) and x.type.dtype.itemsize > 2:
        return _unary("sqrt", eqn)
    return None


def _square(eqn: Eqn, defs: Defs) -> Replacement | None:
    return _power_of_norm(eqn, 2.0, defs)


def _power_of_norm(eqn: Eqn, exponent: float, defs: Defs) -> Replacement | None:
    """The same power, as a function of what the norm is of: it has derivatives where the norm has
    none, at zero.
    """
    x, (out,) = eqn.operands[0], eqn.outputs
    inner = defs.get(x) if isinstance(x, Value) else None
    if inner is None or inner.op.name != "with_derivative" or inner.attrs["of"] != "norm":
        return None
    if len(inner.operands) != 2:
        return None  # a weight beside
    size, *operands = inner.operands
    others = tuple([size if a is x else a for a in eqn.operands])
    power = replace(eqn, operands=others, outputs=(Value(out.type),))
    attrs = {**inner.attrs, "of": "power_of_norm", "exponent": exponent}
    found = application("with_derivative", (*power.outputs, *operands), attrs, eqn.source)
    return Replacement(found.outputs, (power, found))


def _unary(name: str, eqn: Eqn) -> Replacement:
    """Another op of the first operand alone. Python has the power of its numbers, but not this op,
    whose result is strong: it is made as weak as the power.
    """
    (out,) = eqn.outputs
    result = application(name, eqn.operands[:1], {}, eqn.source)
    if result.outputs[0].type == out.type:
        return Replacement(eqn.outputs, (replace(result, outputs=eqn.outputs),))
    attrs = {"dtype": out.type.dtype, "weak": out.type.weak}
    cast = application("cast", result.outputs, attrs, eqn.source)
    return Replacement(cast.outputs, (result, cast))


def _involution(eqn: Eqn, defs: Defs) -> Replacement | None:
    inner = producer(eqn, defs)
    return Replacement((inner.operands[0],)) if inner is not None else None


def _cast(eqn: Eqn, defs: Defs) -> Replacement | None:
    return Replacement((eqn.operands[0],))  # kept by the walk unless the types are the same


def _where(eqn: Eqn, defs: Defs) -> Replacement | None:
    condition, x, y = eqn.operands
    if isinstance(condition, Literal):
        return Replacement((x if condition.value else y,))
    return Replacement((x,)) if x is y else None


def _known(atoms: Sequence[Atom]) -> list[int] | None:
    """The integers that atoms stand for, None if one is not known."""
    found = [int(atom.value) for atom in atoms if isinstance(atom, Literal)]
    return found if len(found) == len(atoms) else None


def _slice(eqn: Eqn, starts: Sequence[int], sizes: tuple[int, ...]) -> Eqn:
    """The window of the first operand at known starts, which are clamped so that it fits."""
    x = eqn.operands[0]
    spans = zip(starts, x.type.shape, sizes, strict=True)
    fitting = tuple([min(max(start, 0), extent - size) for start, extent, size in spans])
    attrs = {"starts": fitting, "steps": (1,) * len(sizes), "sizes": sizes}
    return replace(eqn, op=get("slice"), operands=(x,), attrs=attrs)


def _dynamic_slice(eqn: Eqn, defs: Defs) -> Replacement | None:
    """A window whose place is known is a view."""
    starts = _known(eqn.operands[1:])
    if starts is None:
        return None
    return Replacement(eqn.outputs, (_slice(eqn, starts, eqn.attrs["sizes"]),))


def _gather(eqn: Eqn, defs: Defs) -> Replacement | None:
    """Elements at one known index along each of some axes are a view."""
    x, *indices = eqn.operands
    known = _known(indices)
    if known is None or 0 in x.type.shape:
        return None
    starts, sizes = [0] * x.type.ndim, list(x.type.shape)
    for axis, index in zip(eqn.attrs["dims"], known, strict=True):
        starts[axis] = index + x.type.shape[axis] if index < 0 else index
        sizes[axis] = 1
    (out,) = eqn.outputs
    part = Value(x.type.with_shape(tuple(sizes)))
    view = replace(_slice(eqn, starts, tuple(sizes)), outputs=(part,))
    flat = replace(eqn, op=get("reshape"), operands=(part,), attrs={"shape": out.type.shape})
    return Replacement(eqn.outputs, (view, flat))


simplify_rules: dict[str, Rule] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _quotient,
    "power": _power,
    "square": _square,
    "negative": _involution,
    "invert": _involution,
    "logical_not": _involution,
    "conjugate": _involution,
    "cast": _cast,
    "where": _where,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    **fold_of_one_rules,
}
"""By name of an op: its simplification."""
