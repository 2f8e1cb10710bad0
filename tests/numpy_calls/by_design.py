"""What differs from NumPy, or is refused, by design: each kind with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracegraph import errors

from .calls import Call


@dataclass(frozen=True, slots=True)
class Design:
    """Calls whose target, kind of outcome and detail match, and why they are as they are."""

    target: str
    kind: str
    detail: str
    reason: str


LIST: Sequence[Design] = (
    Design(
        r"numpy\.linalg\.lstsq",
        "differs",
        r"^shape \(1,\), not \(0,\)",
        "shapes do not depend on the rank: residuals of a singular system are NaN, not missing",
    ),
    Design(
        r"numpy\.linalg\.lstsq",
        "differs",
        r"not -1380453947366808",
        "a singular system solved without a cut-off (rcond=-1) has no solution to agree on",
    ),
    Design(
        r"numpy\.array",
        "raw",
        "copy=False",
        "the layout of an argument in memory is no part of its type: it may have to be copied",
    ),
    Design(
        r"numpy\.einsum",
        "raw",
        "cannot write float64 to out= of int64",
        "a sum of floats is not cut off, which NumPy does on one of its ways to compute it",
    ),
    Design(
        r"ndarray\.(ravel|reshape)",
        "differs",
        "^(value|structure)",
        "the layout of an argument in memory is no part of its type: order 'A' and 'K' take rows",
    ),
    Design(
        r"numpy\.clip",
        "accepted",
        "missing 1 required positional argument",
        "the array API standard has one limit only as well",
    ),
    Design(
        r"numpy\.(squeeze|permute_dims|empty_like|histogram)",
        "refused",
        r"^TracerArrayError: function\(\*args",
        "NumPy sees no traced value in a list: tracegraph.numpy has the function",
    ),
    Design(
        r"numpy\.bincount",
        "differs",
        r"^shape \(2,\), not \(4,\)",
        "the length of the result is `length` or `minlength`, as elements do not decide a shape",
    ),
    Design(
        r"numpy\.poly",
        "differs",
        "^dtype complex128, not float64",
        "elements do not decide a dtype: the coefficients of conjugate roots are complex, too",
    ),
    Design(
        r"numpy\.polydiv",
        "differs",
        r"^shape \(2,\), not \(1,\)",
        "elements do not decide a shape: leading zeros of the remainder stay",
    ),
    Design(
        r"numpy\.polyfit",
        "differs",
        "^value 9.9536824",
        "the condition of powers of places 90 to 176, 2e4, multiplies rounding errors",
    ),
    Design(
        r"numpy\.digitize",
        "differs",
        "^value 1, not 2",
        "edges beyond 2**53 are compared exactly; NumPy's order of them is that of floats",
    ),
    Design(
        r"numpy\.reshape",
        "accepted",
        "an integer is required",
        "a boolean is an integer, as it is for `operator.index`",
    ),
    Design(
        r"numpy\.isin",
        "raw",
        "dtype object is not supported",
        "arrays of objects are not supported",
    ),
    Design(
        r"numpy\.asarray_chkfinite",
        "refused",
        "",
        "it raises for elements",
    ),
    Design(
        r"numpy\.diag_indices",
        "refused",
        "",
        "it takes a number of elements, which is never traced",
    ),
    Design(
        r"operator\.mul",
        "refused",
        "^TracerIndexError",
        "a list of Python's is not repeated a traced number of times",
    ),
    Design(
        r"numpy\.broadcast_to",
        "raw",
        "^MemoryError",
        "the result of a program has memory of its own",
    ),
    Design(
        r"(numpy|ndarray)\.choose",
        "accepted",
        "at most 64 array objects",
        "the number of choices has no limit",
    ),
    Design(
        r"numpy\.(negative|divmod|add\.reduce)",
        "accepted",
        "must use `...` as `out=...`",
        "NumPy passes out=... and out=(...,) on alike",
    ),
    Design(
        r"numpy\.(min_scalar_type|real_if_close)",
        "refused",
        "",
        "the dtype of the result depends on elements",
    ),
    Design(
        r"numpy\.clip",
        "differs",
        "multiple values for argument",
        "min and max are parameters of the array API standard, and named twice by Python's rules",
    ),
    Design(
        r"numpy\.equal",
        "raw",
        "casting rule 'equiv'|rule 'equiv'",
        "a Python int beyond 64 bits is compared as an infinity, a float",
    ),
    Design(
        r"ndarray\.choose",
        "accepted",
        "only supports up to 32 dimensions",
        "arrays have up to 64 axes everywhere",
    ),
    Design(
        r"numpy\.(linalg\.eig(vals)?|roots|poly)",
        "refused",
        "",
        "eigenvalues of matrices that are not Hermitian are not implemented",
    ),
    Design(
        r"numpy\..*",
        "refused",
        "^UnsupportedByTracerError: where= of .* without out=",
        "elements where the mask is false would be undefined",
    ),
)

_BY_ERROR = (
    (errors.ShapeDependentError, "the shape depends on traced elements: size= gives one"),
    (errors.BooleanMaskError, "the shape depends on a traced mask: extract(…, size=n) gives one"),
)
"""Refusals that follow from what a trace is, by the class of the error."""


def reason_for(call: Call, kind: str, detail: str, error: Exception | None) -> str:
    """Why a call may differ or be refused; nothing if it may not."""
    if kind == "refused":
        for cls, reason in _BY_ERROR:
            if isinstance(error, cls):
                return reason
    for entry in LIST:
        if (
            entry.kind == kind
            and re.fullmatch(entry.target, call.target)
            and re.search(entry.detail, detail)
        ):
            return entry.reason
    return ""
