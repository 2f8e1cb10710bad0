"""tracegraph.capture on the host: the host function, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

X = np.arange(6.0)


def never(stream: Any, *arrays: Any) -> None:
    raise AssertionError("it runs on a GPU only")


def halves(x: Any) -> Any:
    return x[:3], x[3:]


split = tracegraph.capture(
    never, out=lambda x: (x.with_shape((3,)), x.with_shape((3,))), host=halves
)


def test_the_host_runs_its_function() -> None:
    def f(x: Any) -> Any:
        a, b = split(x * 2)
        return tracegraph.fori_loop(0, 3, lambda i, a: split(np.append(a, b))[0] + 1, a)

    np.testing.assert_array_equal(split(X)[1], X[3:])
    np.testing.assert_array_equal(np.asarray(tracegraph.jit(f, device="host")(X)), f(X))


def test_without_a_function_for_the_host() -> None:
    call = tracegraph.capture(never, out=lambda x: x)
    for run in (call, tracegraph.jit(lambda x: call(x), device="host")):
        with pytest.raises(errors.CustomKernelError, match=r"captured call never .* runs on CUDA"):
            run(X)


def test_a_host_function_of_other_types() -> None:
    call = tracegraph.capture(never, out=lambda x: x, host=lambda x: x[:2])
    with pytest.raises(errors.KernelResultError, match=r"captured call never .*\n.*f64\[2\]"):
        call(X)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"call": 3}, "call must be a function, not 3"),
        ({"host": 3}, "host must be a function, not 3"),
        ({"batching": "all"}, "batching must be a function or"),
        ({"batching": np.zeros(2)}, "batching must be a function or"),
    ],
)
def test_declarations_that_cannot_work(given: dict[str, Any], problem: str) -> None:
    options = {"call": never, "out": lambda x: x, **given}
    with pytest.raises(errors.CustomKernelError, match=problem):
        tracegraph.capture(options.pop("call"), **options)


def test_a_callable_object_is_called_by_its_class() -> None:
    class Plan:
        """A plan of a library."""

        kernel = "its own"

        def __call__(self, stream: Any, x: Any, y: Any) -> None:
            never(stream, x, y)

    call = tracegraph.capture(Plan(), out=lambda x: x, host=lambda x: x + 1)
    assert call.__name__ == "Plan"
    found = tracegraph.jit(call, device="host")(X)
    np.testing.assert_array_equal(np.asarray(found), X + 1)
    assert "Plan" in tracegraph.jit(call, device="cuda").lower(X).dot()


def test_arguments_are_arrays() -> None:
    with pytest.raises(errors.CustomKernelError, match="argument 0: dtype object"):
        split(object())
    with pytest.raises(errors.CustomKernelError, match="out must give an ArrayType"):
        tracegraph.capture(never, out=lambda x: 3)(X)


def test_lanes_and_derivatives() -> None:
    call = tracegraph.capture(never, out=lambda x: x, host=lambda x: x + 1, batching="sequential")
    np.testing.assert_array_equal(tracegraph.vmap(call)(X.reshape(2, 3)), X.reshape(2, 3) + 1)
    with pytest.raises(errors.DerivativeError, match=r"captured call never .* without derivative="):
        tracegraph.grad(lambda x: call(x).sum())(X)
