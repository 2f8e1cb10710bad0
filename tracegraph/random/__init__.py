"""Random numbers with keys, as in `jax.random`: the same keys give the same numbers.

A key is an array of two uint32. Functions that draw numbers are pure: the same key gives the same
numbers, on every device, in loops and in traced functions. New keys are made by `split` and
`fold_in`.

>>> first, second = split(key(0))
>>> uniform(first, (2,)).shape
(2,)

    keys                  key, split, fold_in
    uniform               bits; uniform numbers, integers, booleans
    transformed_uniforms  distributions that are functions of uniform numbers
    truncated             normal numbers between two bounds
    drawing               permutations; elements of an array
    gamma                 distributions by rejection
    counts                Poisson, binomial and geometric numbers
    vectors               normal vectors of a covariance, points of a ball, orthogonal matrices
"""

from tracegraph.random.counts import binomial, geometric, poisson
from tracegraph.random.drawing import choice, permutation
from tracegraph.random.gamma import beta, chisquare, dirichlet, f, gamma, loggamma, t
from tracegraph.random.keys import PRNGKey, fold_in, key, split
from tracegraph.random.transformed_uniforms import (
    categorical,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    pareto,
    rayleigh,
    weibull_min,
)
from tracegraph.random.truncated import truncated_normal
from tracegraph.random.uniform import bernoulli, bits, rademacher, randint, uniform
from tracegraph.random.vectors import ball, generalized_normal, multivariate_normal, orthogonal

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
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
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "laplace",
    "loggamma",
    "logistic",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "truncated_normal",
    "uniform",
    "weibull_min",
]
