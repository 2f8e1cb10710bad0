"""NumPy's random numbers, which a traced function draws once: what to write instead."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

_SAME = (
    "beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma",
    "geometric", "gumbel", "laplace", "logistic", "multivariate_normal", "normal", "pareto",
    "permutation", "poisson", "randint", "rayleigh", "uniform",
)  # fmt: skip

TWINS = {
    **{name: name for name in _SAME},
    **dict.fromkeys(["random", "rand", "random_sample", "ranf", "sample"], "uniform"),
    **dict.fromkeys(["randn", "standard_normal"], "normal"),
    **dict.fromkeys(["integers", "random_integers"], "randint"),
    **dict.fromkeys(["shuffle", "permuted"], "permutation"),
    "bytes": "bits",
    "standard_cauchy": "cauchy",
    "standard_exponential": "exponential",
    "standard_gamma": "gamma",
    "standard_t": "t",
    "weibull": "weibull_min",
}
"""Functions of `tracegraph.random` by the names of NumPy's that draw the same numbers."""


def is_generator(x: Any) -> bool:
    """Whether it is one of NumPy's generators of random numbers."""
    random = sys.modules.get("numpy.random")
    return random is not None and isinstance(x, (random.Generator, random.RandomState))


def is_maker(called: Any) -> bool:
    """Whether it makes such a generator."""
    random = sys.modules.get("numpy.random")
    return random is not None and called in (
        random.default_rng, random.Generator, random.RandomState
    )  # fmt: skip


@cache
def made_generator() -> Any:
    """A generator in place of one that an expression makes, which shows its methods."""
    return sys.modules["numpy.random"].default_rng(0)


def twin(called: Any) -> str | None:
    """The full name of ours in place of a method of a generator; None for any other function."""
    if not is_generator(getattr(called, "__self__", None)):
        return None
    name = TWINS.get(getattr(called, "__name__", ""))
    return "tracegraph.random" if name is None else f"tracegraph.random.{name}"
