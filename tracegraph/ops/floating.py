"""Rounding, and the parts and classes of floating-point numbers."""

from __future__ import annotations

import numpy as np

from tracegraph.ops.elementwise import texts, ufunc_op

floor = ufunc_op(
    np.floor,
    "The largest integer not above x, in the dtype of x.",
    texts(biu="{0}", f="floor({0})"),
)
ceil = ufunc_op(
    np.ceil, "The least integer not below x, in the dtype of x.", texts(biu="{0}", f="ceil({0})")
)
trunc = ufunc_op(
    np.trunc, "x without its fraction, in the dtype of x.", texts(biu="{0}", f="trunc({0})")
)
rint = ufunc_op(
    np.rint,
    "The nearest integer, the even one of two, in floating point.",
    texts(f="rint({0})", c="{T}(rint({0}.re), rint({0}.im))"),
)
isfinite = ufunc_op(
    np.isfinite,
    "Whether x is neither infinite nor NaN.",
    texts(biu="true", f="isfinite({0})", c="(isfinite({0}.re) && isfinite({0}.im))"),
)
isinf = ufunc_op(
    np.isinf,
    "Whether x is infinite, in one part at least.",
    texts(biu="false", f="isinf({0})", c="(isinf({0}.re) || isinf({0}.im))"),
)
isnan = ufunc_op(
    np.isnan,
    "Whether x is NaN, in one part at least.",
    texts(biu="false", f="isnan({0})", c="(isnan({0}.re) || isnan({0}.im))"),
)
signbit = ufunc_op(np.signbit, "Whether the sign bit is set.", texts(f="signbit({0})"))
copysign = ufunc_op(
    np.copysign, "The magnitude of x with the sign of y.", texts(f="copysign({0}, {1})")
)
nextafter = ufunc_op(
    np.nextafter,
    "The number next to x in the direction of y.",
    texts(f="tg_nextafter<{T}>({0}, {1})"),
    cost=4,
)
heaviside = ufunc_op(
    np.heaviside, "0 below zero, 1 above, y at zero.", texts(f="tg_heaviside({0}, {1})")
)
