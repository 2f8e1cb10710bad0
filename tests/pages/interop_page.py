"""docs/interop.md on a GPU: for each name that its examples define, a check that runs it there.

The page itself runs without a GPU, where stand-ins take the place of other libraries.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.testing import check_kernel

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"

Names = Mapping[str, Any]
Check = Callable[[Names, str], None]

ORDINARY = {"np", "tracegraph"}
"""Names that examples import."""


def blocks() -> list[str]:
    """The examples of the page."""
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


def names() -> dict[str, Any]:
    """What the examples define; what they print is left out."""
    found: dict[str, Any] = {"__name__": "example"}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in blocks():
            exec(compile(code, "example.py", "exec", dont_inherit=True), found)
    return found


def defined() -> set[str]:
    """The functions and classes that examples define, and what they make by tracegraph's."""
    found = set()
    for code in blocks():
        for statement in ast.parse(code).body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found.add(statement.name)
            made = isinstance(statement, ast.Assign) and ast.unparse(statement.value)
            if made and re.match(r"tracegraph\.(elementwise|reduction|kernel|capture)\(", made):
                found.add(ast.unparse(statement.targets[0]))
    return found


CHECKS: dict[tuple[str, ...], Check] = {}
"""By the names that a check runs."""


def check(*covered: str) -> Callable[[Check], Check]:
    """Enter a check of these names; it runs them on a device."""

    def enter(function: Check) -> Check:
        CHECKS[covered] = function
        return function

    return enter


def agrees(f: Any, *arguments: Any, device: str, rtol: float = 1e-12) -> None:
    """A function has the same results on the device as on the host."""
    expected = tracegraph.tree.leaves(tracegraph.jit(f, device="host")(*arguments))
    found = tracegraph.tree.leaves(tracegraph.jit(f, device=device)(*arguments))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=rtol)


X = np.array([0.0, 1.0, 2.0])


@check("lif", "spikes")
def check_lif(page: Names, device: str) -> None:
    v, current = page["v"], page["current"] + np.float32(0.75)
    check_kernel(page["lif"], v, current, 0.9, v.size, device=device, rtol=1e-6)
    counts = tracegraph.jit(page["spikes"], device=device)(v, page["current"])[1]
    expected = tracegraph.jit(page["spikes"], device="host")(v, page["current"])[1]
    # the kernel contracts a product and a sum, so that a neuron may fire a step later
    assert abs(int(np.sum(counts)) - int(np.sum(expected))) < 50


@check("saxpy_text", "saxpy", "steps", "scaled_sum")
def check_saxpy(page: Names, device: str) -> None:
    for dtype in (np.float32, np.float64):
        check_kernel(page["saxpy"], 2.0, X.astype(dtype), X[::-1].astype(dtype), device=device)
    agrees(page["steps"], X, np.ones(3), device=device)
    mapped = tracegraph.vmap(lambda x: page["saxpy"](2.0, x, np.ones(3)))
    agrees(mapped, np.arange(6.0).reshape(2, 3), device=device)
    agrees(tracegraph.grad(lambda x: page["scaled_sum"](x, X).sum()), X, device=device)


@check("decay", "decay_rule", "total")
def check_decay(page: Names, device: str) -> None:
    check_kernel(page["decay"], X, 0.5, device=device, rtol=1e-14)
    agrees(tracegraph.value_and_grad(page["total"]), X, device=device)
    agrees(tracegraph.hessian(lambda x: page["decay"](x, 2.0).sum()), X, device=device)


@check("softplus", "limited")
def check_elementwise(page: Names, device: str) -> None:
    check_kernel(page["softplus"], X, device=device)
    agrees(tracegraph.vmap(tracegraph.grad(page["softplus"])), X, device=device)
    check_kernel(page["limited"], np.arange(4), 2, device=device)
    mapped = tracegraph.vmap(page["limited"], in_axes=(None, 0))
    agrees(mapped, np.arange(4), np.array([1, 2]), device=device)


@check("strongest", "log_sum", "log_sum_rule")
def check_reductions(page: Names, device: str) -> None:
    strongest, log_sum = page["strongest"], page["log_sum"]
    table = np.array([[1, -5, 2], [3, 2, -7]])
    agrees(lambda x: (strongest(x, axis=1), strongest.accumulate(x, 1)), table, device=device)
    agrees(lambda x: (log_sum(x), log_sum.accumulate(x)), X, device=device)
    agrees(tracegraph.grad(log_sum), X, device=device)
    agrees(tracegraph.grad(lambda x: log_sum.accumulate(x)[-1]), X, device=device)


@check("Transform", "spectrum_of", "stand_in")
def check_capture(page: Names, device: str) -> None:
    pytest.importorskip("cupy")
    spectrum = tracegraph.jit(page["spectrum_of"](page["Transform"](8)), device=device)
    x = np.arange(8) + 1j
    expected = np.abs(np.fft.fft(x * np.hanning(8))) ** 2
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(spectrum(x)), expected, rtol=1e-10, atol=1e-10)


@check("captured_by_cupy", "smoothed_by")
def check_embed(page: Names, device: str) -> None:
    pytest.importorskip("cupy")
    x = np.array([0.0, 3.0, 0.0, 0.0])
    smoothed = tracegraph.jit(page["smoothed_by"](*page["captured_by_cupy"](4)), device=device)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(smoothed(x)), np.asarray(page["smoothed"](x)))


@check("two_parts")
def check_events(page: Names, device: str) -> None:
    from cuda.core import Device

    Device(0).set_current()
    stream = Device(0).create_stream()
    f = page["two_parts"](done=stream.record(), ready=stream.record())
    inner, halo = tracegraph.jit(f, device=device)(np.ones(3), np.ones(2))
    np.testing.assert_array_equal(np.asarray(inner), [1, 2, 3])
    np.testing.assert_array_equal(np.asarray(halo), [2, 2])


@check("solve")
def check_timed(page: Names, device: str) -> None:
    solve = page["solve"].on_device(device)
    a, b = np.eye(3) + np.ones((3, 3)), np.ones(3)
    solution, _ = solve(a, b)
    np.testing.assert_allclose(np.asarray(solution), np.linalg.solve(a, b))
    assert list(solve.timings()) == ["normal equations", "solve"]


@check("captured_by_torch")
def check_torch(page: Names, device: str) -> None:
    torch = pytest.importorskip("torch")
    function = tracegraph.jit(lambda y: y * 3, device=device)
    x = torch.ones(8, dtype=torch.float64, device="cuda")
    function(x).synchronize()
    graph, result = page["captured_by_torch"](function, x)
    for value in (1.0, -2.0, 4.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        np.testing.assert_array_equal(result.cpu().numpy(), np.full(8, 3 * max(value, 0.0) + 1))


@check("captured_by_cuda_core")
def check_cuda_core(page: Names, device: str) -> None:
    from cuda.core import Device

    own = Device(0)
    own.set_current()
    function = tracegraph.jit(lambda x: x * 3, device=device)
    x = tracegraph.asarray(X, device=device)
    function(x).synchronize()
    graph, result = page["captured_by_cuda_core"](own, function, x)
    stream = own.create_stream()
    for _ in range(3):
        graph.launch(stream)
        stream.sync()
    np.testing.assert_array_equal(np.asarray(result), 3 * X)
