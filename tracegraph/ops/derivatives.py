"""Ops that only derivatives tell from the identity: stop_gradient."""

from __future__ import annotations

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.derivative import Constant
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ops.elementwise import texts
from tracegraph.ops.tricky import tricky

stop_gradient = register(
    Op(
        "stop_gradient",
        "x itself, as a constant to derivatives.",
        lambda x: x,
        np.array,
        Elementwise(texts(biufc="{0}"), 0),
        lambda: [Sample((tricky(dtype),)) for dtype in SHORT_NAMES],
        derivative=Constant(),
    )
)
