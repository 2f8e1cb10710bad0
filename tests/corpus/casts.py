"""Conversions between all dtypes."""

from __future__ import annotations

import numpy as np

from tests.corpus.case import program
from tracegraph.dtypes import SHORT_NAMES

SOURCES = {
    "b": np.array([True, False, True]),
    "i": np.array([-3, 0, 100]),
    "u": np.array([3, 0, 200]),
    "f": np.array([-2.75, 0.0, 99.5]),
    "V": np.array([-2.75, 0.0, 99.5]),
    "c": np.array([1.5 - 2j, 0, 3 + 4j]),
}


def every_target(source):
    """A program that casts to each dtype, within what C++ and NumPy both define."""

    def cast(x):
        real = x.real if source.kind == "c" else x
        signless = np.abs(real) if source.kind != "b" else real
        targets = [t for t in SHORT_NAMES if t.kind == "u" or source.kind == "c"]
        results = [signless.astype(t) if t.kind == "u" else real.astype(t) for t in SHORT_NAMES]
        return results, [x.astype(t) for t in targets if t.kind == "c"]

    return cast


for _dtype, _short in SHORT_NAMES.items():
    _name = f"casts_from_{_short}"
    program(SOURCES[_dtype.kind].astype(_dtype), name=_name)(every_target(_dtype))


@program(np.arange(-4, 5), np.float32(0.5))
def mixed_dtypes_promote(n, a):
    narrow = n.astype("i1")
    return (
        n * a,
        narrow * a,
        narrow + np.int16(300),
        narrow / 2,
        (narrow > 0) + a,
        n.astype("f2") * a,
    )


@program(np.array([2.5, 1e300, -7.0]))
def a_chain_of_roundings(x):
    return x.astype("f4").astype("f2").astype("f8"), (x / 3).astype("f4") * np.float32(3)


@program(np.array([0.1, 300.7, -5.25], "f2"), np.array([1, 2, 3], "f2"))
def half_precision_rounds_each_step(x, y):
    return x * y + x, (x + y) / y - x, np.sum(y), np.maximum(x, y)
