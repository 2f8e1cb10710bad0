"""Programs with Fourier transforms: kernels as CUDA runs them, transforms as cuFFT makes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.compilation.compile import cubin
from lowering.plan.calls.fourier import FourierTransform
from tests.cases import fourier as fourier_cases
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.numpy_agreement import assert_close
from tests.helpers.running import lowered
from tracegraph import tree

GIVEN = {k: v for k, v in fourier_cases.ARGUMENTS.items() if np.size(v)}


def of_case(expression: str) -> Callable[[Any], Any]:
    return lambda values: eval(expression, {"xp": np, "np": np, **values})


CASES = [of_case(text) for text in fourier_cases.TABLES if not re.search(r"\be\b", text)]


def looped(values: Any) -> Any:
    """The result of a transform is overwritten by the next one, in a loop and in a branch."""
    x, z = values["x"], values["c"]

    def step(_: Any, x: Any) -> Any:
        return np.fft.irfft(np.fft.rfft(x) * 0.5) + x

    y = tracegraph.fori_loop(0, values["i"][0], step, x, schedule="conditional")
    w = tracegraph.cond(
        y[0, 0] > 0, np.fft.irfft, lambda z: np.fft.irfft(z * 1j), z, schedule="conditional"
    )
    return y, w, z * 2


def overwriting(call: FourierTransform) -> Callable[..., None]:
    """What cuFFT does, where it is to overwrite: the operand is not of use any more."""

    def run(source: Any, target: Any) -> None:
        assert not source[..., 0].imag.any()
        assert target.shape[-1] % 2 or not source[..., -1].imag.any()
        target[...] = call.op.reference(source, **call.attrs)
        source[...] = np.nan

    return run if call.overwrites else plain(call)


plain = FourierTransform.run_host.fget  # type: ignore[attr-defined]


def every(values: Any) -> Any:
    return [case(values) for case in CASES], looped(values)


@pytest.mark.skipif(COMPILER is None, reason="needs g++")
def test_plans_give_what_numpy_gives(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FourierTransform, "run_host", property(overwriting))
    plans = EmulatedPlans({"every": (every, (GIVEN,))}, tmp_path)
    expected = tree.leaves(every(GIVEN))
    for order in (None, Random(0)):
        found = tree.leaves(plans.run("every", GIVEN, order=order))
        for got, wanted in zip(found, map(np.asarray, expected), strict=True):
            got = np.asarray(got)
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            assert_close(got / 16, wanted / 16)


def test_kernels_compile() -> None:
    source = lowered(every, GIVEN, device="cuda").source
    assert len(cubin(source, "sm_90").code) > 0
