"""Kernels and functions of users in files: what is loaded needs none of their Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.custom_functions import CASES, operands
from tests.cases.custom_kernels import PROGRAMS
from tests.programs.exported import own
from tracegraph import errors

X = np.linspace(-1, 2, 6)


def again(function: Any, *args: Any, **options: Any) -> tracegraph.Exported:
    data = bytes(tracegraph.export(function, *args, **options))
    loaded = tracegraph.load(data)
    assert bytes(loaded) == data
    return loaded


def same(found: Any, expected: Any) -> None:
    for a, b in zip(*map(tracegraph.tree.leaves, (found, expected)), strict=True):
        assert (a.dtype, np.asarray(a).tobytes()) == (b.dtype, np.asarray(b).tobytes())


def test_loaded_kernels_and_functions_give_the_same_bits_and_the_same_kernels() -> None:
    cases = [(program.function, program.arguments) for program in PROGRAMS]
    cases += [(function, operands(dtypes)) for function, dtypes in CASES]
    for function, arguments in cases:
        loaded = again(function, *arguments)
        same(loaded(*arguments), tracegraph.jit(function, device="host")(*arguments))
        assert loaded.code
    for function, arguments in (cases[0], cases[-1], (own, (X,))):
        loaded = again(function, *arguments)
        found, expected = (
            tracegraph.jit(f, device="cuda").lower(*arguments) for f in (loaded, function)
        )
        assert found.source == expected.source
        assert len(found.nodes) == len(expected.nodes)


def test_derivatives_and_lanes_are_those_of_the_functions() -> None:
    def total(f: Any) -> Any:
        return lambda x: (f(x) * np.sin(x)).sum()

    def twice(f: Any) -> Any:
        return tracegraph.grad(lambda x: tracegraph.grad(total(f))(x).sum())

    def in_lanes(f: Any) -> Any:
        return lambda x: tracegraph.grad(total(tracegraph.vmap(f)))(np.stack([x, 2 * x]))

    def forward(f: Any) -> Any:
        return lambda x: tracegraph.jvp(f, (x,), (x * x,))[1]

    loaded = again(own, X, order=2)
    for take in (lambda f: tracegraph.grad(total(f)), twice, in_lanes, forward):
        np.testing.assert_allclose(take(loaded)(X), take(own)(X), rtol=1e-12)
    with pytest.raises(errors.CustomRuleError, match=r"its derivative is not in the file.*order="):
        tracegraph.grad(total(again(own, X)))(X)


def test_files_with_code_are_loaded_if_they_are_trusted() -> None:
    plain, data = (bytes(tracegraph.export(f, X)) for f in (np.sin, own))
    assert tracegraph.load(plain, trusted=False).code == ()
    with pytest.raises(errors.UntrustedCodeError, match=r"kernel scaled \(exported.py:\d+\)"):
        tracegraph.load(data, trusted=False)
    kinds = [label.split()[0] for label in tracegraph.load(data).code]
    assert kinds == ["elementwise", "kernel", "fold"]


TEXT = 'extern "C" __global__ void f(const double* x, double* y) { y[0] = x[0]; }'
OPTIONS: dict[str, Any] = {"entry": "f", "out": lambda x: x, "grid": 1, "block": 1}


def test_a_kernel_whose_reference_is_python_is_for_gpus() -> None:
    kernel = tracegraph.kernel(source=TEXT, **OPTIONS)(lambda x: np.array([float(x[0])]))
    loaded = again(kernel, X[:1])
    assert TEXT in tracegraph.jit(loaded, device="cuda").lower(X[:1]).source
    with pytest.raises(
        errors.CustomKernelError, match=r"(?s)has no NumPy form in .*run it on a GPU"
    ):
        loaded(X[:1])
    (label,) = loaded.gpu_only
    assert label in loaded.code
    assert repr(loaded).endswith(", for GPUs alone>")
    assert f"\nfor GPUs alone: {label}: it cannot be traced: " in str(loaded).partition("\n\n")[0]
    assert not again(own, X).gpu_only
    wrong = tracegraph.kernel(source=TEXT, **OPTIONS)(lambda x: x.astype("float32"))
    with pytest.raises(errors.KernelResultError, match=r"declared f64\[1\], returned f32\[1\]"):
        again(wrong, X[:1])


def test_kernels_that_are_no_text_are_refused_with_their_line() -> None:
    class Compiled:
        handle = 1

    cases = {
        "includes headers": tracegraph.kernel(source=TEXT, include_paths=["/h"], **OPTIONS),
        "compiled before": tracegraph.kernel(Compiled(), **{**OPTIONS, "entry": None}),
    }
    for why, declare in cases.items():
        kernel = declare(lambda x: x)
        with pytest.raises(errors.UnsavableError, match=rf"test_own_functions\.py:\d+.*{why}"):
            tracegraph.export(lambda x, f=kernel: f(x), X[:1])
    captured = tracegraph.capture(lambda stream, x, y: None, out=lambda x: x, host=lambda x: x)
    with pytest.raises(errors.UnsavableError, match="it captures what a Python function"):
        tracegraph.export(lambda x: captured(x), X)
