"""Derivatives at singular points as programs, for backends: each a function of one array."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.helpers.compiled import on_host
from tests.helpers.devices import Device
from tracegraph import grad, jacfwd, jacrev, sparse, special

Program = Callable[[Any], Any]

SEGMENTS = np.array([0, 2, 0, 2, 2, 9])
KNOTS = np.array([0.0, 1.0, 2.0, 4.0])
WEIGHTS = np.random.default_rng(0).standard_normal((3, 3))
_OF_RANK_3 = np.diag([1.0, 0.0, 2.0, 3.0]) + np.diag([1.0, 0.0, 0.0], 1)


def _det(x: Any) -> Any:
    return np.linalg.det(x)


def _square_of_norms(x: Any) -> Any:
    return (np.linalg.norm(x, axis=1) ** 2).sum()


def _cubes_of_eigenvalues(x: Any) -> Any:
    return (np.linalg.eigvalsh((x + x.T) / 2) ** 3).sum()


def _rebuilt(x: Any) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return (((u * s) @ vh) * WEIGHTS).sum()


def _complete(x: Any) -> Any:
    q, r = np.linalg.qr(x[:, :2], mode="complete")
    return ((q @ r) * WEIGHTS[:, :2]).sum() + r[0, 1] ** 2


def _special(x: Any) -> Any:
    found = special.j1(x) + special.i1e(x) + special.gammainc(2.0, x) + np.sinc(x)
    return (found + special.log_ndtr(-10 * x) + special.erfcx(x) + special.xlogy(x, x + 1)).sum()


def _powers(x: Any) -> Any:
    return (x ** (x - 1)).sum()


_DERIVATIVES: dict[str, tuple[Program, Any]] = {
    "gradient of det": (grad(_det), _OF_RANK_3),
    "second derivative of det": (jacfwd(grad(_det)), _OF_RANK_3),
    "gradient of a norm": (grad(lambda x: np.linalg.norm(x, axis=1).sum()), np.diag([0.0, 3.0])),
    "second derivative of norms": (jacfwd(grad(_square_of_norms)), np.diag([0.0, 3.0])),
    "norm of order 3": (grad(lambda x: np.linalg.norm(x, 3, axis=1).sum()), np.diag([0.0, 3.0])),
    "standard deviation": (grad(lambda x: np.std(x, axis=1).sum()), np.diag([0.0, 3.0])),
    "interp": (grad(lambda x: np.interp(x, KNOTS, KNOTS**2).sum()), np.arange(-1.0, 7.0)),
    "second derivative of eigenvalues": (jacfwd(grad(_cubes_of_eigenvalues)), np.eye(3)),
    "rebuilt from singular vectors": (grad(_rebuilt), np.eye(3)),
    "complete factors": (grad(_complete), np.eye(3) + WEIGHTS),
    "segments": (jacrev(lambda x: sparse.segment_prod(x, SEGMENTS, 3)), np.arange(6.0)),
    "second derivatives of special functions": (jacfwd(grad(_special)), np.array([0.0, 0.5, 2.5])),
    "second derivatives of powers": (jacfwd(grad(_powers)), np.array([0.5, 1.0, 3.0])),
}
PROGRAMS = {name: (function, (x,)) for name, (function, x) in _DERIVATIVES.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_the_host(name: str, device: Device) -> None:
    function, arguments = PROGRAMS[name]
    expected = on_host(function, *arguments)
    assert np.isfinite(expected).all()
    found = device.run(name, *arguments, order=Random(name))
    np.testing.assert_allclose(np.asarray(found), expected, 1e-5, 1e-6)
