"""Derivatives of the factors with a square Q."""

from __future__ import annotations

from typing import Any

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.attached import derivative_rule, with_derivative
from tracegraph.numpy.linalg.matrices import adjoint
from tracegraph.transforms.derivatives.forward import jvp

_QR = get("qr")


@derivative_rule("complete_r")
def _of_triangle(value: Any, a: Any, *, tangents: Any) -> Any:
    """That of the reduced factor, above rows of zeros."""
    _, found = jvp(lambda a: apply(_QR, a)[1], (a,), (tangents[0],))
    missing = value.shape[-2] - found.shape[-2]
    rest = tnp.zeros((*value.shape[:-2], missing, found.shape[-1]), found.dtype)
    return tnp.concatenate([found, rest], axis=-2)


@derivative_rule("complete_q")
def _of_basis(value: Any, a: Any, *, tangents: Any) -> Any:
    """That of the reduced factor B, and of further columns C: -B B'ᴴ C, which keeps them so."""
    whole, n = with_derivative(value, "complete_q", a), a.shape[-1]
    _, found = jvp(lambda a: apply(_QR, a)[0], (a,), (tangents[0],))
    first, further = whole[..., :n], whole[..., n:]
    return tnp.concatenate([found, -first @ (adjoint(found) @ further)], axis=-1)
