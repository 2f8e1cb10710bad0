"""Tangents and cotangents that users give: each is checked against the value that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.ir.program import Atom, Literal
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives.activity import is_inexact

_FLOAT0 = np.dtype([("float0", np.void, 0)])
"""JAX's dtype of the tangents of integers."""


def matched(
    transform: str,
    what: str,
    of: Callable[[], str],
    structure: tree.Structure,
    types: Sequence[ArrayType],
    given: Any,
    names: Sequence[str] = (),
) -> list[Any]:
    """The leaves of a tree of tangents or cotangents, one for each type; None where it has None.

    `what` they are, and `of` what, in the words of a message. `names` are those of the values.

    Raises:
        TransformError: the structure is another.
        TangentMismatchError: a type is another; or the value is an integer, which has no tangent
            but zeros and None.
    """
    try:
        leaves = structure.flatten_up_to(given)
    except ValueError:
        needed, got = map(errors.structure_text, (structure, tree.structure(given)))
        raise errors.TransformError(
            transform,
            f"the {what} must have the structure {needed}, as {of()}, got {got}; None stands for "
            "zero",
        ) from None
    found: list[Any] = []
    wrong: list[tuple[str, ArrayType, str]] = []
    for i, (type_, leaf) in enumerate(zip(types, leaves, strict=True)):
        fit = None
        if leaf is not None and is_inexact(type_):
            fit = _fitted(type_, leaf)
        if leaf is not None and fit is None and (is_inexact(type_) or not _is_zero(type_, leaf)):
            text = errors.value_text(leaf)
            if not is_inexact(type_):
                text += ", but integers and bools have no tangent: give None, or zeros"
            name = f" (argument {names[i]})" if names else ""
            wrong.append((tree.paths(structure, what)[i], type_.strong(), text + name))
        found.append(fit)
    if wrong:
        raise errors.TangentMismatchError(transform, f"the {what}", of(), wrong)
    return found


def _fitted(type_: ArrayType, leaf: Any) -> Any:
    """A tangent in the dtype of its value, which it must convert to by "same_kind"; else None."""
    try:
        type_given = type_of(leaf)
    except (TypeError, OverflowError):
        return None
    if type_given.shape != type_.shape:
        return None
    if type_given.dtype != type_.dtype and not (
        type_given.weak or np.can_cast(type_given.dtype, type_.dtype, "same_kind")
    ):
        return None
    if type_given.weak and type_given.dtype.kind == "c" and type_.dtype.kind != "c":
        return None
    if type_given.dtype == type_.dtype and not type_given.weak:
        return leaf
    if not isinstance(leaf, (np.ndarray, Array, Tracer)):
        return np.asarray(leaf, type_.dtype)[()]
    return FUNCTIONS["astype"](leaf, type_.dtype)


def _is_zero(type_: ArrayType, leaf: Any) -> bool:
    """Whether a tangent of an integer is zero: of its shape, or as JAX has it."""
    if getattr(leaf, "dtype", None) == _FLOAT0:
        return bool(leaf.shape == type_.shape)
    try:
        given = type_of(leaf)
    except (TypeError, OverflowError):
        return False
    if given.shape != type_.shape:
        return False
    if isinstance(leaf, Tracer):
        return _is_traced_zero(leaf)
    return not np.any(np.asarray(leaf))


def _is_traced_zero(x: Tracer) -> bool:
    """Whether a traced value is known to be zero: a literal, or made of one."""
    makers = {value: eqn for eqn in getattr(x.owner, "eqns", ()) for value in eqn.outputs}
    atom: Atom = x.atom
    while not isinstance(atom, Literal):
        maker = makers.get(atom)
        if maker is None or maker.op.name not in ("broadcast_to", "reshape", "cast"):
            return False
        atom = maker.operands[0]
    return not atom.value
