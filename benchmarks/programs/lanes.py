"""One program for many lanes by `vmap`: logistic regressions, and integration with adaptive steps.

Each lane of the latter makes steps of its own, as many as it needs.
"""

from __future__ import annotations

from benchmarks.harness.agreement import within

from .differentiated import LIBRARIES
from .dynamics import populations, tsit5
from .program import Program

SAMPLES = 100
FEATURES = 16
DESCENTS = 50


def _samples(draw, n, dtype):
    """Of n data sets: features, labels, and the weights to begin with."""
    features = draw.rng.standard_normal((n, SAMPLES, FEATURES))
    labels = draw.rng.random((n, SAMPLES)) < 0.5
    weights = draw.rng.standard_normal((n, FEATURES)) / 10
    return features.astype(dtype), labels.astype(dtype), weights.astype(dtype)


def fit(language):
    """The weights of one regression after gradient descent."""
    xp, transforms = language.xp, language.transforms

    def fitted(features, labels, weights):
        def loss(weights):
            logits = features @ weights
            return xp.mean(xp.logaddexp(logits, 0 * logits) - labels * logits)

        def descend(_, weights):
            return weights - 0.5 * transforms.grad(loss)(weights)

        return language.loops.fori_loop(0, DESCENTS, descend, weights)

    return fitted


def integrate(language):
    """The populations of one place at the end, and the steps to there."""
    return tsit5(language, language.loops.while_loop)


PROGRAMS = (
    Program(
        name="regressions",
        title=f"n logistic regressions, {DESCENTS} steps of gradient descent",
        write=lambda language: language.transforms.vmap(fit(language)),
        inputs=_samples,
        sizes=(100, 2000),
        agrees=within(1e-3, 1e-10),
        libraries=LIBRARIES,
    ),
    Program(
        name="integrations",
        title="Tsit5 in n lanes, each with adaptive steps of its own",
        write=lambda language: language.transforms.vmap(integrate(language), (1, None, None)),
        inputs=populations,
        sizes=(100, 10_000),
        agrees=within(2e-2, 1e-6, steps=0.5),  # of 10,000 lanes, some take other steps
        libraries=LIBRARIES,
    ),
)
