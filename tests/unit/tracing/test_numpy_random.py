"""NumPy's random numbers in traced functions: the warning about constants, and what errors say."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import host_jit
from tracegraph import errors
from tracegraph.tracing.numpy_random import TWINS

RNG = np.random.default_rng(0)


def drawn() -> Any:
    return np.random.uniform(size=3)


class Model:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def noisy(self, x: Any) -> Any:
        return x + self.rng.normal(x)

    def __call__(self, x: Any) -> Any:
        return x + np.random.rand()


DRAWS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a method": (lambda x: x + np.random.normal(), "np.random.normal()", "normal"),
    "rand": (lambda x: x * np.random.rand(3), "np.random.rand(3)", "uniform"),
    "in what it calls": (lambda x: x + drawn(), "np.random.uniform(size=3)", "uniform"),
    "an object": (Model(), "np.random.rand()", "uniform"),
    "in a loop": (
        lambda x: tracegraph.fori_loop(0, 3, lambda i, y: y + np.random.normal(size=3), x),
        "np.random.normal(size=3)",
        "normal",
    ),
    "under grad": (
        tracegraph.grad(lambda x: np.sum(x * np.random.standard_t(5))),
        "np.random.standard_t(5)",
        "t",
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_while_tracing_is_a_constant_with_a_warning(name: str) -> None:
    f, text, twin = DRAWS[name]
    run = host_jit(f)
    with pytest.warns(errors.FrozenRandomWarning) as caught:
        first = run(np.ones(3))
    (warning,) = [w for w in caught if w.category is errors.FrozenRandomWarning]
    assert warning.filename == __file__
    with open(__file__, encoding="utf-8") as file:
        assert text in file.readlines()[warning.lineno - 1]
    assert str(warning.message).startswith(text)
    assert f"use tracegraph.random.{twin}," in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is traced again
        np.testing.assert_array_equal(run(np.ones(3)), first)


def test_a_kept_normal_number_counts() -> None:
    """The generator makes two normal numbers at a time: the second one changes no word."""
    for seed in (3, 4):
        np.random.seed(seed)
        np.random.normal()
        with pytest.warns(errors.FrozenRandomWarning):
            host_jit(lambda x: x + np.random.normal())(1.0)


def test_other_generators_of_the_module_are_watched() -> None:
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(1))
    try:
        with pytest.warns(errors.FrozenRandomWarning):
            host_jit(lambda x: x + np.random.random())(1.0)
        host_jit(lambda x: x + 1)(1.0)
    finally:
        np.random.set_bit_generator(before)


def test_draws_elsewhere_are_no_draws_of_the_function() -> None:
    constant = np.random.normal(size=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = host_jit(lambda x: x + constant)
        run(np.ones(3))
        np.random.normal()
        run(np.ones(3))
        host_jit(lambda x: x + np.random.default_rng(4).normal())(1.0)
        tracegraph.grad(lambda x: x * np.random.normal())(1.0)  # draws anew in every call


def with_generator(x: Any) -> Any:
    rng = np.random.RandomState(5)
    return rng.standard_normal(x)


ERRORS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a parameter": (lambda x: np.random.normal(x), "np.random.normal(x)", "normal"),
    "a scale": (lambda x: np.random.gamma(2.0, x), "np.random.gamma(2.0, x)", "gamma"),
    "of a generator": (lambda x: RNG.normal(x), "RNG.normal(x)", "normal"),
    "of a new one": (
        lambda x: np.random.default_rng(0).exponential(x),
        "np.random.default_rng(0).exponential(x)",
        "exponential",
    ),
    "of an attribute": (Model().noisy, "self.rng.normal(x)", "normal"),
    "of a variable": (with_generator, "rng.standard_normal(x)", "normal"),
    "integers": (lambda x: RNG.integers(x), "RNG.integers(x)", "randint"),
    "a size": (lambda x: RNG.random(x.astype(int)), "RNG.random(x.astype(int))", "uniform"),
    "choices": (lambda x: np.random.choice(x), "np.random.choice(x)", "choice"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_traced_parameters_of_numpys_draws_name_ours(name: str) -> None:
    f, text, twin = ERRORS[name]
    with pytest.raises(errors.TracerMisuseError) as caught:
        host_jit(f)(3.0)
    message = str(caught.value)
    assert message.startswith(f"{text} needs the elements of a traced value")
    assert f"write tracegraph.random.{twin}, which takes a key" in message


def test_what_is_advised_is_there() -> None:
    for name, twin in TWINS.items():
        assert hasattr(tracegraph.random, twin)
        assert hasattr(np.random, name) or hasattr(np.random.Generator, name)
