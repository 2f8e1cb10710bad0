"""Bits of integers; bools are single bits."""

from __future__ import annotations

import numpy as np

from tracegraph.ir.op import Op
from tracegraph.ops.elementwise import texts, ufunc_op


def _infix(ufunc: np.ufunc, doc: str, sign: str) -> Op:
    return ufunc_op(ufunc, doc, texts(biu=f"(({{T}})({{0}} {sign} {{1}}))"))


bitwise_and = _infix(np.bitwise_and, "The bits set in both.", "&")
bitwise_or = _infix(np.bitwise_or, "The bits set in one or both.", "|")
bitwise_xor = _infix(np.bitwise_xor, "The bits set in exactly one.", "^")
invert = ufunc_op(
    np.invert, "All bits flipped; of a bool, its negation.", texts(b="(!{0})", iu="(({T})(~{0}))")
)
left_shift = ufunc_op(
    np.left_shift,
    "x shifted left by y bits; by the width or more, 0.",
    texts(iu="tg_left_shift<{T}>({0}, {1})"),
)
right_shift = ufunc_op(
    np.right_shift,
    "x shifted right by y bits, keeping its sign.",
    texts(iu="tg_right_shift<{T}>({0}, {1})"),
)
