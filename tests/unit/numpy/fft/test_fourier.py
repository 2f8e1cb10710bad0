"""`numpy.fft`: values and errors of NumPy's, Arrays, `out`, derivatives, lanes, loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases import fourier as fourier_cases
from tests.helpers.compiled import on_host
from tests.helpers.numpy_agreement import assert_jitted_equals_numpy
from tracegraph import errors
from tracegraph.dtypes import bfloat16

ARGUMENTS = fourier_cases.ARGUMENTS


@pytest.mark.parametrize("expression", [*fourier_cases.TABLES, *fourier_cases.REFUSED])
def test_expressions_equal_numpys(expression: str) -> None:
    assert_jitted_equals_numpy(expression, ARGUMENTS)


@pytest.mark.parametrize("expression", fourier_cases.REFUSED)
def test_errors_are_numpys_for_arrays_too(expression: str) -> None:
    with pytest.raises((TypeError, ValueError, IndexError)) as wanted:
        eval(expression, {"xp": np, **ARGUMENTS})
    ours = {k: tracegraph.asarray(v) for k, v in ARGUMENTS.items()}
    kind = next(k for k in (TypeError, ValueError, IndexError) if isinstance(wanted.value, k))
    for xp in (np, tnp):
        with pytest.raises(kind):
            eval(expression, {"xp": xp, **ours})


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_bfloat16_is_transformed_in_float32(norm: str) -> None:
    x = np.array([1, -2, 3, 0.5, 0, 4], bfloat16)
    for function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.irfftn):
        expected = function(x.astype(np.float32), norm=norm)
        found = on_host(lambda x, function=function: function(x, norm=norm), x)
        is_real = expected.dtype.kind == "f"
        assert found.dtype == (bfloat16 if is_real else np.complex64)
        np.testing.assert_allclose(
            found.astype(expected.dtype), expected, rtol=1e-2 if is_real else 1e-6, atol=1e-6
        )


def test_a_traced_length_names_the_argument() -> None:
    with pytest.raises(errors.StaticArgumentError, match=r"n of numpy\.fft\.rfft"):
        on_host(lambda x, n: np.fft.rfft(x, n), np.ones(4), 3)


def test_results_are_written_to_out() -> None:
    def function(x: Any) -> Any:
        y = np.zeros_like(x * 1j)
        found = np.fft.fft(x, out=y)
        return y, found is y

    found, is_out = on_host(function, ARGUMENTS["x"])
    np.testing.assert_allclose(found, np.fft.fft(ARGUMENTS["x"]))
    assert is_out
    with pytest.raises(errors.UnsupportedByTracerError, match=r"out= of numpy\.fft\.fft"):
        on_host(lambda x: np.fft.fft(x, out=np.zeros(4, complex)), np.ones(4))


def test_frequencies_are_made_on_a_device() -> None:
    found = tnp.fft.fftfreq(6, 0.5, device="host")
    assert isinstance(found, tracegraph.Array)
    np.testing.assert_array_equal(np.asarray(found), np.fft.fftfreq(6, 0.5))
    np.testing.assert_array_equal(tnp.fft.rfftfreq(7), np.fft.rfftfreq(7))
    single = tnp.fft.rfftfreq(7, dtype=np.float32)
    np.testing.assert_array_equal(single, np.fft.rfftfreq(7).astype(np.float32), strict=True)
    traced = on_host(lambda d: tnp.fft.fftfreq(6, d, dtype=np.float32), 0.5)
    np.testing.assert_array_equal(traced, np.fft.fftfreq(6, 0.5).astype(np.float32), strict=True)


def test_large_prime_lengths_and_powers_of_two() -> None:
    rng = np.random.default_rng(3)
    for n in (97, 1000, 1009, 1 << 12):
        x = rng.normal(size=n)
        np.testing.assert_allclose(on_host(np.fft.fft, x), np.fft.fft(x), atol=1e-11)
        np.testing.assert_allclose(
            on_host(np.fft.irfft, np.fft.rfft(x)), np.fft.irfft(np.fft.rfft(x))
        )


def matrix_of(function: Any, n: int, dtype: Any) -> Any:
    """The linear function as a matrix of real numbers, by unit vectors."""
    units = np.eye(n)
    columns = [*units.astype(dtype), *((1j * units) if np.dtype(dtype).kind == "c" else [])]
    results = [np.asarray(function(column)).ravel() for column in columns]
    return np.array([np.concatenate([y.real, y.imag]) for y in results]).T


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_gradients_are_transposes(name: str, n: int) -> None:
    """Of real functions of a real operand, which NumPy's matrix gives."""
    function = getattr(np.fft, name)
    rng = np.random.default_rng(n)
    m = n // 2 + 1 if name in ("irfft", "hfft") else n
    options = {"n": n}
    x, weights = rng.normal(size=m), rng.normal(size=np.shape(function(np.ones(m), **options)))

    def weighed(x: Any) -> Any:
        y = function(x, **options)
        return np.sum(weights * (np.real(y) + 3 * np.imag(y)))

    matrix = matrix_of(lambda v: function(v, **options), m, np.float64)
    expected = matrix.T @ np.concatenate([weights, 3 * weights])
    np.testing.assert_allclose(on_host(tracegraph.grad(weighed), x), expected, atol=1e-13)
    tangent = rng.normal(size=m)
    _, moved = on_host(
        lambda x, t: tracegraph.jvp(lambda v: function(v, **options), (x,), (t,)), x, tangent
    )
    np.testing.assert_allclose(moved, function(tangent, **options), atol=1e-14)


def test_gradients_over_several_axes_and_of_complex_numbers() -> None:
    c = ARGUMENTS["c"]

    def energy(re: Any, im: Any) -> Any:
        y = np.fft.irfftn(np.fft.fftn(re + 1j * im, (4, 5), (0, 1)), axes=(1, 0))
        return np.sum(np.sin(y))

    value = on_host(energy, c.real, c.imag)
    np.testing.assert_allclose(value, energy(c.real, c.imag))
    of_real, of_imag = on_host(tracegraph.grad(energy, argnums=(0, 1)), c.real, c.imag)
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, *c.shape))
    step = 1e-6
    ahead, behind = (energy(c.real + k * u, c.imag + k * v) for k in (step, -step))
    np.testing.assert_allclose(
        np.sum(of_real * u + of_imag * v), (ahead - behind) / (2 * step), rtol=1e-6
    )


def test_lanes_loops_and_branches() -> None:
    x = np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_allclose(on_host(tracegraph.vmap(np.fft.rfft), x), np.fft.rfft(x))
    columns = on_host(tracegraph.vmap(np.fft.fft, in_axes=1, out_axes=1), x)
    np.testing.assert_allclose(columns, np.fft.fft(x, axis=0), atol=1e-14)

    def damped(x: Any, steps: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            spectrum = np.fft.rfft(x)
            return np.fft.irfft(spectrum / (1 + np.fft.rfftfreq(6) ** 2), 6)

        x = tracegraph.fori_loop(0, steps, step, x)
        return tracegraph.cond(steps > 2, lambda: np.fft.fft2(x), lambda: np.fft.ifft2(x))

    for steps in (2, 3):
        expected = x
        for _ in range(steps):
            expected = np.fft.irfft(np.fft.rfft(expected) / (1 + np.fft.rfftfreq(6) ** 2), 6)
        expected = np.fft.fft2(expected) if steps > 2 else np.fft.ifft2(expected)
        np.testing.assert_allclose(on_host(damped, x, steps), expected, atol=1e-14)


def test_every_function_stands_in_a_table() -> None:
    tables = " ".join(fourier_cases.TABLES)
    assert [name for name in tnp.fft.__all__ if f"xp.fft.{name}(" not in tables] == []
    assert {n for n in np.fft.__all__ if callable(getattr(np.fft, n))} <= {*tnp.fft.__all__}
