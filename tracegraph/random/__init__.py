"""Random numbers with keys, as in `jax.random`: the same keys give the same numbers.

A key is an array of two uint32. Functions that draw numbers are pure: the same key gives the same
numbers, on every device, in loops and in traced functions. New keys are made by `split` and
`fold_in`.

>>> first, second = split(key(0))
>>> uniform(first, (2,)).shape
(2,)

    keys         key, split, fold_in
    uniform      bits; uniform numbers, integers, booleans
    transforms   distributions that are functions of uniform numbers
    drawing      permutations; elements of an array
    gamma        distributions by rejection
"""

from tracegraph.random.drawing import choice, permutation
from tracegraph.random.gamma import beta, chisquare, dirichlet, f, gamma, loggamma, t
from tracegraph.random.keys import PRNGKey, fold_in, key, split
from tracegraph.random.transforms import (
    categorical,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    pareto,
    rayleigh,
    truncated_normal,
    weibull_min,
)
from tracegraph.random.uniform import bernoulli, bits, rademacher, randint, uniform

__all__ = [
    "PRNGKey",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "laplace",
    "loggamma",
    "logistic",
    "normal",
    "pareto",
    "permutation",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "truncated_normal",
    "uniform",
    "weibull_min",
]
