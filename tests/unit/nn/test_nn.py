"""Functions of networks: their dtypes and shapes, sums over axes, classes, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import nn

ELEMENTWISE = [
    "celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log_sigmoid",
    "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "squareplus",
    "tanh",
]  # fmt: skip
INTEGERS = {"relu", "relu6", "hard_tanh"}
"""Functions of integers that are integers."""

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ELEMENTWISE, "softmax", "log_softmax", "standardize", "glu"])
def test_dtypes_stay_and_traced_values_are_eager_ones(name: str, dtype: Any) -> None:
    function = getattr(nn, name)
    x = np.linspace(-4, 4, 6).reshape(3, 2).astype(dtype)
    found = assert_traced_equals_eager(function, x)
    assert found.dtype == dtype
    assert found.shape == ((3, 1) if name == "glu" else (3, 2))
    assert function(tracegraph.asarray(x)).dtype == dtype


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_integers_numbers_and_lists_are_taken(name: str) -> None:
    function = getattr(nn, name)
    found = function(np.array([-1, 0, 2], np.int32))
    assert found.dtype == (np.int32 if name in INTEGERS else np.float64)
    np.testing.assert_allclose(found, function([-1.0, 0.0, 2.0]))
    np.testing.assert_allclose(function(2.0), found[2])


@pytest.mark.parametrize("name", [*ELEMENTWISE, "softmax", "standardize", "one_hot", "identity"])
def test_complex_numbers_are_refused(name: str) -> None:
    further = (3,) if name == "one_hot" else ()
    with pytest.raises(TypeError, match=f"nn.{name} takes real numbers, got complex128"):
        getattr(nn, name)(np.array([1j]), *further)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_gradients_of_batches_are_those_of_elements(name: str) -> None:
    function = getattr(nn, name)
    x = np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0, 6.0, 1000.0, -1000.0])
    each = tracegraph.vmap(tracegraph.grad(function))(x)
    whole = tracegraph.jit(tracegraph.grad(lambda x: np.sum(function(x))), device="host")(x)
    np.testing.assert_allclose(each, whole, 1e-15)
    assert np.isfinite(each).all()
    second = tracegraph.vmap(tracegraph.grad(tracegraph.grad(function)))(x)
    assert np.isfinite(second).all()


@pytest.mark.parametrize(
    ("function", "slopes"),
    [
        (lambda a: nn.leaky_relu(-2.0, a), -2.0),
        (lambda a: nn.elu(-1.0, a), np.expm1(-1.0)),
        (lambda a: nn.elu(1000.0, a), 0.0),
        (lambda a: nn.celu(-1.0, a), np.expm1(-1 / 0.5) + np.exp(-1 / 0.5) / 0.5),
        (lambda a: nn.squareplus(3.0, a), 0.25 / np.sqrt(9.5)),
        (lambda a: nn.squareplus(-3.0, a), 0.25 / np.sqrt(9.5)),
    ],
)
def test_parameters_have_derivatives(function: Any, slopes: float) -> None:
    np.testing.assert_allclose(tracegraph.grad(function)(0.5), slopes, 1e-12)


def test_softmax_takes_the_last_axis_and_a_mask() -> None:
    x = np.array([[1.0, 2.0, 3.0], [-1000.0, 1000.0, 0.0]])
    wanted = np.exp(x - x.max(-1, keepdims=True))
    wanted /= wanted.sum(-1, keepdims=True)
    np.testing.assert_allclose(nn.softmax(x), wanted, 1e-15)
    np.testing.assert_allclose(nn.softmax(x, axis=0).sum(0), np.ones(3), 1e-15)
    np.testing.assert_allclose(nn.softmax(x, axis=(0, 1)).sum(), 1.0, 1e-15)
    np.testing.assert_allclose(nn.log_softmax(x[:1]), np.log(wanted[:1]), 1e-14)
    mask = np.array([True, True, False])
    np.testing.assert_allclose(nn.softmax(x[0], where=mask), [*nn.softmax(x[0, :2]), 0.0], 1e-15)
    found = nn.log_softmax(x[0], where=mask)
    np.testing.assert_allclose(found[:2], nn.log_softmax(x[0, :2]), 1e-15)
    assert found[2] == -np.inf
    slopes = tracegraph.grad(lambda x: nn.softmax(x, where=mask)[0])(x[0])
    p = nn.softmax(x[0, :2])[0]
    np.testing.assert_allclose(slopes, [p * (1 - p), -p * (1 - p), 0.0], 1e-14)


def test_standardize() -> None:
    x = np.random.default_rng(3).normal(5.0, 2.0, (4, 100)) + 1e8
    found = nn.standardize(x)
    np.testing.assert_allclose(found.mean(-1), 0.0, atol=1e-7)
    np.testing.assert_allclose(found.std(-1), 1.0, 1e-5)
    np.testing.assert_allclose(nn.standardize(x, axis=(0, 1)).mean(), 0.0, atol=1e-7)
    np.testing.assert_array_equal(nn.standardize(np.ones((2, 3))), np.zeros((2, 3)))
    np.testing.assert_allclose(nn.standardize([4.0], mean=1.0, variance=9.0, epsilon=0.0), [1.0])


def test_glu() -> None:
    x = np.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * nn.sigmoid(x[:, 2:]))
    np.testing.assert_allclose(nn.glu(x, axis=0), x[:1] * nn.sigmoid(x[1:]))
    with pytest.raises(ValueError, match="splits an axis into halves, got an extent of 3"):
        nn.glu(np.ones(3))
    with pytest.raises(np.exceptions.AxisError):
        nn.glu(np.ones(4), axis=1)


def test_one_hot() -> None:
    classes = np.array([[0, 2], [3, -1]])
    wanted = (classes[..., None] == np.arange(3)).astype(float)
    np.testing.assert_array_equal(
        assert_traced_equals_eager(lambda x: nn.one_hot(x, 3), classes), wanted
    )
    np.testing.assert_array_equal(nn.one_hot(classes, 3, axis=0), np.moveaxis(wanted, -1, 0))
    assert nn.one_hot(1, 3, dtype="float32").dtype == np.float32
    assert nn.one_hot(np.uint64(2), 3, dtype=np.int8).tolist() == [0, 0, 1]
    assert nn.one_hot([0, 1], 0).shape == (2, 0)
    with pytest.raises(np.exceptions.AxisError):
        nn.one_hot(classes, 3, axis=3)
    with pytest.raises(ValueError, match="num_classes is at least 0, got -1"):
        nn.one_hot(classes, -1)
    with pytest.raises(TypeError, match="num_classes"):
        tracegraph.jit(lambda n: nn.one_hot(0, n), device="host")(3)


def test_a_network_is_trained() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 2))
    classes = (x[:, 0] * x[:, 1] > 0).astype(int)
    weights = {"a": rng.normal(size=(2, 16)), "b": rng.normal(size=(16, 2)) / 4}

    def loss(weights: Any, x: Any, classes: Any) -> Any:
        scores = nn.log_softmax(nn.gelu(x @ weights["a"]) @ weights["b"])
        return -tnp.mean(tnp.sum(nn.one_hot(classes, 2) * scores, -1))

    @tracegraph.jit(device="host")
    def trained(weights: Any, x: Any, classes: Any) -> Any:
        def step(i: Any, weights: Any) -> Any:
            slopes = tracegraph.grad(loss)(weights, x, classes)
            return tracegraph.tree.map(lambda w, s: w - 0.5 * s, weights, slopes)

        return tracegraph.fori_loop(0, 300, step, weights)

    before, after = (float(loss(w, x, classes)) for w in (weights, trained(weights, x, classes)))
    assert before > 0.6
    assert after < 0.3


def test_names_of_jax_that_are_not_had_say_ours() -> None:
    with pytest.raises(AttributeError, match="initializers"):
        nn.initializers  # noqa: B018
    assert nn.swish is nn.silu
    assert nn.hard_swish is nn.hard_silu
