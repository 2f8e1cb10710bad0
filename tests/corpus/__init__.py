"""Small named programs with arguments, on which all ways of running a function must agree.

They are written with plain NumPy and tracegraph's control flow. Each module adds its own.
"""

from tests.corpus import (
    applications,
    beside,
    casts,
    contractions,
    elementwise,
    indexing,
    kernels,
    loops,
    masks,
    mutation,
    nesting,
    reductions,
    shapes,
    stencils,
    structures,
    triangular,
)
from tests.corpus.case import CASES, Case

__all__ = [
    "CASES",
    "Case",
    "applications",
    "beside",
    "casts",
    "contractions",
    "elementwise",
    "indexing",
    "kernels",
    "loops",
    "masks",
    "mutation",
    "nesting",
    "reductions",
    "shapes",
    "stencils",
    "structures",
    "triangular",
]
