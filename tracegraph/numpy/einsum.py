"""Einstein summation, reduced to diagonals, sums, transposes and matrix products.

    subscripts := labels ("," labels)* ["->" labels]        labels: letters, and "..." once

First, each operand is simplified alone: repeated labels become diagonals, axes that broadcast are
left out, and labels that neither the output nor another operand then has are summed. Then the
operands are multiplied from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from operator import index
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import get
from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.axes import transpose
from tracegraph.numpy.contractions import product, with_precision
from tracegraph.numpy.creation import asarray
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function, unchecked
from tracegraph.numpy.dispatching.output import Casting, stored
from tracegraph.numpy.selecting import writable_diagonal
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.ufuncs import multiply
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.views import order_of

__all__ = ["einsum", "einsum_path"]


@dataclass(frozen=True, slots=True)
class _Labelled:
    """An array with a label for each axis, no label twice."""

    array: Any
    labels: str


@with_precision
@numpy_function
def einsum(
    *operands: Any,
    out: Any = None,
    dtype: DTypeLike | None = None,
    order: str = "K",
    casting: Casting = "safe",
    optimize: Any = False,
) -> Any:
    """Sums of products, by labels of axes: `einsum("ij,jk->ik", a, b)`.

    Implicit output (labels that occur once, sorted), ellipses, repeated labels and the form
    `einsum(a, [0, 1], b, [1, 2], [0, 2])` are understood. `optimize` says in which order NumPy
    multiplies; here it is that of the operands.

    Shape: the extents of the output's labels.
    Dtype: the common one of the operands, or `dtype`.

    Raises:
        TypeError: an operand does not convert to `dtype` by the rule `casting`.
        ValueError: labels do not fit the operands, or there is no such order.

    >>> tnp.einsum('ij,j->i', [[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    laid_out = order_of(order, "K")
    text, arrays = _as_text(operands)
    if isinstance(optimize, (list, tuple)):
        _require_path(text, arrays, optimize)
    terms, output = _parse(text, [a.ndim for a in arrays])
    if dtype is None:
        within = result_type(*(type_of(a) for a in arrays)) if len(arrays) > 1 else arrays[0].dtype
    else:
        within = np.dtype(dtype)
        _require_cast(arrays, within, casting)
    arrays = [unchecked(a, within) for a in arrays]
    extents = _extents(terms, arrays)
    full = [_without_repeats(a, labels, extents) for a, labels in zip(arrays, terms, strict=True)]
    labelled = [
        _summed(x, set(output).union(*(other.labels for other in full[:k] + full[k + 1 :])))
        for k, x in enumerate(full)
    ]
    result = labelled[0]
    for k, factor in enumerate(labelled[1:], 1):
        needed = set(output).union(*(other.labels for other in labelled[k + 1 :]))
        result = _product(result, factor, needed)
    array = transpose(result.array, tuple(result.labels.index(c) for c in output))
    is_view = len(arrays) == 1 and set(terms[0]) == set(output)  # whatever `order` says
    if out is None and laid_out in ("C", "F") and not is_view:
        return asarray(array, order=laid_out)
    return stored("einsum", array, out, casting)


@numpy_function
def einsum_path(
    *operands: Any, optimize: Any = "greedy", einsum_call: bool = False
) -> tuple[list[Any], Any]:
    """The order of the products of an einsum, and a text on it: by the shapes alone.

    Raises:
        ValueError: the subscripts do not fit the arrays.

    >>> tnp.einsum_path("ij,jk->ik", np.eye(2), np.eye(2))[0]
    ['einsum_path', (0, 1)]
    """
    find: Any = np.einsum_path
    shapes = [_like(x) if isinstance(x, ArrayOperators) else x for x in operands]
    found: tuple[list[Any], Any] = find(*shapes, optimize=optimize, einsum_call=einsum_call)
    return found


def _require_path(text: str, arrays: Sequence[Any], path: Any) -> None:
    """Require that an order of products, which is not followed here, is one of these operands.

    Raises:
        RuntimeError, TypeError: it is not.
    """
    find: Any = np.einsum_path
    find(text, *map(_like, arrays), optimize=path)


def _require_cast(arrays: Sequence[Any], dtype: np.dtype[Any], casting: Casting) -> None:
    for a in arrays:
        if not np.can_cast(a.dtype, dtype, casting):
            raise TypeError(
                f"numpy.einsum cannot cast an operand of {a.dtype} to {dtype} by the rule "
                f"{casting!r}; write casting='unsafe', or cast it"
            )


def _like(x: Any) -> Any:
    """An array of NumPy of the same dtype and shape."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _as_text(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts and arrays, from either form of the arguments."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), [as_array(a) for a in operands[1:]]
    arrays = [as_array(a) for a in operands[: len(operands) // 2 * 2 : 2]]
    terms = [_as_labels(sublist) for sublist in operands[1::2]]
    arrow = "->" + _as_labels(operands[-1]) if len(operands) % 2 else ""
    return ",".join(terms) + arrow, arrays


def _as_labels(sublist: Iterable[Any]) -> str:
    return "".join("..." if k is Ellipsis else _letter(index(k)) for k in sublist)


def _letter(k: int) -> str:
    if not 0 <= k < len(ascii_letters):
        raise ValueError(f"subscript {k} is not within the valid range [0, {len(ascii_letters)})")
    return ascii_letters[k]


def _parse(text: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Labels of each operand and of the output, ellipses spelled out."""
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum {text!r} describes {len(terms)} operands, but got {len(ranks)}")
    named = [len(term.replace("...", "")) for term in terms]
    for term, have, rank in zip(terms, named, ranks, strict=True):
        if have > rank or ("..." not in term and have != rank):
            raise ValueError(
                f"einsum {text!r}: labels {term!r} do not fit an operand of {rank} axes"
            )
    hidden = [rank - have for rank, have in zip(ranks, named, strict=True)]
    spare = "".join(c for c in ascii_letters if c not in text)[: max(hidden, default=0)]
    spelled = [
        term.replace("...", spare[len(spare) - count :])
        for term, count in zip(terms, hidden, strict=True)
    ]
    if not arrow:
        letters = "".join(terms).replace(".", "")
        output = spare + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    output = output.replace("...", spare)
    unknown = set(output) - set("".join(spelled))
    if unknown or len(set(output)) != len(output):
        raise ValueError(f"einsum {text!r}: each output label must occur in an operand, and once")
    return spelled, output


def _extents(terms: Sequence[str], arrays: Sequence[Any]) -> dict[str, int]:
    """The extent of each label; 1 broadcasts."""
    extents: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        own = dict(zip(term, array.shape, strict=True))
        for label, extent in zip(term, array.shape, strict=True):
            if extent != own[label]:
                raise ValueError(
                    f"einsum: label {label!r} is repeated for axes of the extents {extent} and "
                    f"{own[label]}, which do not broadcast in one operand"
                )
            known = extents.setdefault(label, extent)
            if known == 1:
                extents[label] = extent
            elif extent not in (1, known):
                raise ValueError(f"einsum: label {label!r} has extents {known} and {extent}")
    return extents


def _without_repeats(array: Any, labels: str, extents: dict[str, int]) -> _Labelled:
    """An operand without repeated labels and axes that broadcast."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            array = writable_diagonal(array, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    stretched = [c for c, n in zip(labels, array.shape, strict=True) if n != extents[c]]
    labels = "".join(c for c in labels if c not in stretched)
    return _Labelled(reshape(array, tuple(extents[c] for c in labels)), labels)


def _summed(x: _Labelled, wanted: set[str]) -> _Labelled:
    """An operand summed over labels that nothing else has."""
    alone = tuple(k for k, c in enumerate(x.labels) if c not in wanted)
    if not alone:
        return x
    labels = "".join(c for c in x.labels if c in wanted)
    return _Labelled(apply(get("sum"), x.array, axes=alone), labels)


def _product(x: _Labelled, y: _Labelled, needed: set[str]) -> _Labelled:
    """The product of two operands, summed over labels that nothing after it needs."""
    shared = [c for c in x.labels if c in y.labels]
    batch = "".join(c for c in shared if c in needed)
    summed = "".join(c for c in shared if c not in needed)
    free_x = "".join(c for c in x.labels if c not in shared)
    free_y = "".join(c for c in y.labels if c not in shared)
    extents = dict(zip(x.labels + y.labels, x.array.shape + y.array.shape, strict=True))
    left = _grouped(x, (batch, free_x, summed), extents)
    right = _grouped(y, (batch, summed, free_y), extents)
    array = product(left, right) if summed else multiply(left, right)
    labels = batch + free_x + free_y
    return _Labelled(reshape(array, tuple(extents[c] for c in labels)), labels)


def _grouped(x: _Labelled, groups: tuple[str, str, str], extents: dict[str, int]) -> Any:
    """The array with its axes in the order of the groups, one axis for each of the last two."""
    array = transpose(x.array, tuple(x.labels.index(c) for group in groups for c in group))
    batch, *matrix = ([extents[c] for c in group] for group in groups)
    return reshape(array, (*batch, *(prod(extent) for extent in matrix)))
