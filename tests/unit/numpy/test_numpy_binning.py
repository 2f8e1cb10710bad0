"""Searches, histograms, membership, indices and spacings: under jit, and for eager Arrays."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases import binning as binning_cases
from tests.helpers.numpy_agreement import assert_close, assert_jitted_equals_numpy
from tracegraph import errors, tree

ARGUMENTS = binning_cases.ARGUMENTS


@pytest.mark.parametrize("expression", [*binning_cases.TABLES, *binning_cases.OUTPUTS])
def test_expressions_equal_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


@pytest.mark.parametrize("expression", list(binning_cases.TABLES)[::2])
def test_arrays_give_the_same(expression: str) -> None:
    used = {k: v for k, v in ARGUMENTS.items() if re.search(rf"\b{k}\b", expression)}
    ours = {k: tracegraph.asarray(v) for k, v in used.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = eval(expression, {"xp": np, "np": np, **used})
        except (TypeError, ValueError, IndexError) as error:
            kind = next(k for k in (TypeError, ValueError, IndexError) if isinstance(error, k))
            with pytest.raises(kind):
                eval(expression, {"xp": tnp, "np": np, **ours})
            return
        found = eval(expression, {"xp": tnp, "np": np, **ours})
    for got, wanted in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        got, wanted = np.asarray(got), np.asarray(wanted)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got, wanted)


def test_edges_and_ranges_may_be_traced() -> None:
    f, k, i = ARGUMENTS["f"], ARGUMENTS["k"], ARGUMENTS["i"]
    weights = ARGUMENTS["w"]

    @tracegraph.jit(device="host")
    def f_of(f: Any, k: Any, low: Any, w: Any) -> Any:
        return (
            np.histogram(f, k),
            np.histogram(f, 3, (low, 1.5)),
            np.histogram(i, 3, (low, 1.5), weights=w),
            np.digitize(f, k[::-1]),
            np.histogram2d(f, w, [k, 3]),
        )

    expected = (
        np.histogram(f, k),
        np.histogram(f, 3, (-1.0, 1.5)),
        np.histogram(i, 3, (-1.0, 1.5), weights=weights),
        np.digitize(f, k[::-1]),
        np.histogram2d(f, weights, [k, 3]),
    )
    for got, wanted in zip(
        tree.leaves(f_of(f, k, -1.0, weights)), tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)


def test_edges_on_the_bounds_of_bins() -> None:
    """Elements that are edges of bins, whose numbers a division would get wrong."""
    for bins in (3, 7, 10, 49):
        edges = np.linspace(0.1, 0.7, bins + 1)
        x = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
        found = tracegraph.jit(lambda x, n=bins: np.histogram(x, n, (0.1, 0.7)), device="host")(x)
        expected = np.histogram(x, bins, (0.1, 0.7))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(got), wanted)


def test_long_arrays() -> None:
    x = np.random.default_rng(0).normal(size=20_000)
    points = np.sort(np.random.default_rng(1).normal(size=1_000))
    found = tracegraph.jit(lambda x, p: (np.searchsorted(p, x), np.histogram(x, 50)))(x, points)
    expected = np.searchsorted(points, x), np.histogram(x, 50)
    for got, wanted in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted)


def test_the_number_of_bins_must_be_known() -> None:
    jitted = tracegraph.jit(lambda x: np.histogram(x, "auto"), device="host")
    with pytest.raises(errors.ShapeDependentError, match=r"bins='auto'.*bins=n"):
        jitted(ARGUMENTS["f"])
    with pytest.raises(errors.TracerMisuseError, match=r"np\.histogram\(x, n\).*static"):
        tracegraph.jit(lambda x, n: np.histogram(x, n), device="host")(ARGUMENTS["f"], 3)


def test_the_order_of_products_is_known_while_tracing() -> None:
    x = ARGUMENTS["x"]

    def f(x: Any) -> Any:
        path = np.einsum_path("ij,kj,kl->il", x, x, x)
        assert path[0] == expected[0]
        assert np.common_type(x, np.float32([1])) is np.float64
        return x

    expected = np.einsum_path("ij,kj,kl->il", x, x, x)
    tracegraph.jit(f, device="host")(x)
    assert tnp.einsum_path("ij,kj,kl->il", *[tracegraph.asarray(x)] * 3)[0] == expected[0]
    assert tnp.common_type(tracegraph.asarray(x)) is np.float64
    with pytest.raises(TypeError, match=r"non-numeric|bool"):
        tnp.common_type(tracegraph.asarray(x > 0))


def test_nans_alone() -> None:
    nans = np.full(3, np.nan)
    for function in (np.nanargmax, np.nanargmin):
        assert tracegraph.jit(function, device="host")(nans) == 0
    for function in (tnp.nanargmax, tnp.nanargmin):
        with pytest.raises(ValueError, match="All-NaN"):
            function(tracegraph.asarray(nans))
