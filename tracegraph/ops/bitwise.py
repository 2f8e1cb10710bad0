"""Bits of integers, bools being single bits; divisors and multiples."""

from __future__ import annotations

import numpy as np

from tracegraph.ir.combiners import BITWISE_AND, BITWISE_OR, BITWISE_XOR, GCD, LCM
from tracegraph.ir.derivative import Constant
from tracegraph.ops.elementwise import texts, ufunc_op

bitwise_and = ufunc_op(
    np.bitwise_and, "The bits set in both.", BITWISE_AND.c, derivative=Constant()
)
bitwise_or = ufunc_op(
    np.bitwise_or, "The bits set in one or both.", BITWISE_OR.c, derivative=Constant()
)
bitwise_xor = ufunc_op(
    np.bitwise_xor, "The bits set in exactly one.", BITWISE_XOR.c, derivative=Constant()
)
invert = ufunc_op(
    np.invert,
    "All bits flipped; of a bool, its negation.",
    texts(b="(!{0})", iu="(({T})(~{0}))"),
    derivative=Constant(),
)
left_shift = ufunc_op(
    np.left_shift,
    "x shifted left by y bits; by the width or more, 0.",
    texts(iu="tg_left_shift<{T}>({0}, {1})"),
    derivative=Constant(),
)
right_shift = ufunc_op(
    np.right_shift,
    "x shifted right by y bits, keeping its sign.",
    texts(iu="tg_right_shift<{T}>({0}, {1})"),
    derivative=Constant(),
)
gcd = ufunc_op(
    np.gcd, "The greatest common divisor of |x| and |y|.", GCD.c, cost=32, derivative=Constant()
)
lcm = ufunc_op(
    np.lcm, "The least common multiple of |x| and |y|.", LCM.c, cost=32, derivative=Constant()
)
bitwise_count = ufunc_op(
    np.bitwise_count,
    "The number of bits set in |x|.",
    texts(iu="__popcll(tg_magnitude({0}))"),
    derivative=Constant(),
)
