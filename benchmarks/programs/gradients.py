"""Derivatives of straight programs: a network with three layers, and the energy of n bodies.

Pearlmutter, "Fast exact multiplication by the Hessian", 1994.
"""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.harness.agreement import within

from .differentiated import LIBRARIES, with_gradient
from .program import Program

BATCH = 256
FEATURES = 64
CLASSES = 10
PARAMETERS = tuple(range(2, 8))


def _layers(draw, n, dtype):
    """Examples, what is wanted of them, and weights and shifts of layers with n units."""
    widths = (FEATURES, n, n, CLASSES)
    examples = [draw.rng.standard_normal((BATCH, width)) for width in (FEATURES, CLASSES)]
    parameters = []
    for rows, columns in itertools.pairwise(widths):
        parameters.append(draw.rng.standard_normal((rows, columns)) / np.sqrt(rows))
        parameters.append(draw.rng.standard_normal(columns) / 10)
    return [x.astype(dtype) for x in (*examples, *parameters)]


def _network(language, _=None):
    """The mean square by which three layers miss what is wanted."""
    xp = language.xp

    def loss(x, wanted, w1, b1, w2, b2, w3, b3):
        hidden = xp.tanh(xp.tanh(x @ w1 + b1) @ w2 + b2)
        missed = hidden @ w3 + b3 - wanted
        return (missed * missed).mean()

    return loss


def _layers_and_direction(draw, n, dtype):
    """The same, and a direction for each weight and shift."""
    given = _layers(draw, n, dtype)
    directions = [draw.rng.standard_normal(given[i].shape).astype(dtype) for i in PARAMETERS]
    return [*given, *directions]


def _hessian_product(language):
    """The derivative of the network's gradient in a direction."""
    transforms, loss = language.transforms, _network(language)
    count = len(PARAMETERS)

    def product(x, wanted, *parameters_and_direction):
        parameters = parameters_and_direction[:count]
        direction = parameters_and_direction[count:]
        slope = transforms.grad(
            lambda *parameters: loss(x, wanted, *parameters), argnums=tuple(range(count))
        )
        return transforms.jvp(slope, parameters, direction)[1]

    return product


def _bodies(draw, n, dtype):
    """Positions and masses."""
    return draw.rng.standard_normal((n, 3)).astype(dtype), draw.uniform(n, dtype, 0.5, 2.0)


def _energy(language, _):
    """The potential energy of bodies that attract each other, softened at small distances."""
    xp = language.xp

    def energy(positions, masses):
        apart = positions[:, None, :] - positions[None, :, :]
        distance = xp.sqrt((apart * apart).sum(2) + 0.01)
        return -0.5 * (masses[:, None] * masses[None, :] / distance).sum()

    return energy


PROGRAMS = (
    *with_gradient(
        "network",
        f"loss of a network with three layers, {BATCH} examples",
        _network,
        PARAMETERS,
        inputs=_layers,
        sizes=(64, 1024),
        agrees=within(1e-3, 1e-10),
    ),
    Program(
        name="hessian_product",
        title="Hessian of that loss times a vector, forwards over reverse",
        write=_hessian_product,
        inputs=_layers_and_direction,
        sizes=(64, 1024),
        agrees=within(2e-3, 1e-10),
        libraries=LIBRARIES,
    ),
    *with_gradient(
        "bodies",
        "energy of n bodies, all pairs",
        _energy,
        inputs=_bodies,
        sizes=(64, 1024),
        agrees=within(2e-3, 1e-10),
    ),
)
