"""Every op record, by family. Importing the package registers all of them."""

from tracegraph.ops import (
    arithmetic,
    arrange,
    bitwise,
    comparison,
    control,
    convert,
    effects,
    floating,
    index,
    linalg,
    reduce,
    scatter,
    shape,
    transcendental,
)

__all__ = [
    "arithmetic",
    "arrange",
    "bitwise",
    "comparison",
    "control",
    "convert",
    "effects",
    "floating",
    "index",
    "linalg",
    "reduce",
    "scatter",
    "shape",
    "transcendental",
]
