"""tracegraph.kernel: declarations, calls, the host, vmap, derivatives and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.custom_kernels import (
    PROGRAMS,
    Program,
    doubled_rows,
    each_program,
    incremented,
    lif,
    saxpy,
)
from tracegraph import ArrayType, errors, tree
from tracegraph.testing import assert_traced_equals_eager, check_kernel

X = np.arange(6.0)
TEXT = 'extern "C" __global__ void f(const double* x, double* y) { y[threadIdx.x] = x[0]; }'


def declared(reference: Any = lambda x: x, **given: Any) -> Any:
    options = {"source": TEXT, "entry": "f", "out": lambda x: x, "grid": 1, "block": 32, **given}
    return tracegraph.kernel(**options)(reference)


@each_program
def test_the_host_runs_the_reference(program: Program) -> None:
    def run(f: Any, *arguments: Any) -> Any:
        return tracegraph.jit(f, device="host")(*arguments)

    assert_traced_equals_eager(program.function, *program.arguments, ulps=0, ways={"run": run})


def test_a_call_that_is_not_traced_is_the_reference() -> None:
    after, spiked = lif(np.float32([0.5, 2.0]), np.float32([0.25, 0]), 1.0, 2)
    np.testing.assert_array_equal(after, np.float32([0.75, 0]))
    assert type(after) is np.ndarray
    assert spiked.tolist() == [False, True]
    assert lif.__name__ == "lif"
    assert lif.reference.__doc__ == lif.__doc__


def test_arrays_in_and_out() -> None:
    found = incremented(tracegraph.asarray(X))
    assert isinstance(found, tracegraph.Array)
    np.testing.assert_array_equal(np.asarray(found), X + 1)


def test_arguments_stay_as_they_are() -> None:
    x, y = X.copy(), X.copy()
    np.testing.assert_array_equal(saxpy(2.0, x, y=y), 3 * X)
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(x, X)


def test_a_reference_cannot_write_to_its_arguments() -> None:
    def overwriting(x: Any) -> Any:
        x += 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        declared(overwriting)(X)


def test_keywords_defaults_and_a_tuple_of_one() -> None:
    kernel = declared(lambda x, a=3: (x * a,), out=lambda x, a: (x,), scalars={"a": "int32"})
    (found,) = kernel(x=X)
    np.testing.assert_array_equal(found, 3 * X)
    (found,) = tracegraph.jit(lambda x: kernel(x, a=np.int64(4)), device="host")(X)
    np.testing.assert_array_equal(np.asarray(found), 4 * X)


def test_numbers_for_arrays_have_their_own_dtype() -> None:
    kernel = declared(lambda x, shift: x + shift, out=lambda x, shift: x)
    np.testing.assert_array_equal(kernel(X, 1.5), X + 1.5)
    lowered = tracegraph.jit(lambda x: kernel(x, 1.5), device="host").lower(X)
    (node,) = [node for node in lowered.nodes if node.kind == "custom kernel"]
    assert [str(type_) for type_ in node.types] == ["f64[6]", "f64[]"]


# what is declared does not hold


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (lambda x: x[:2], r"output 0: declared f64\[6\], returned f64\[2\]"),
        (lambda x: x.astype("f4"), r"output 0: declared f64\[6\], returned f32\[6\]"),
        (lambda x: (x, x), "results: declared one array, returned a tuple of 2"),
        (lambda x: None, r"output 0: declared f64\[6\], returned object\[\]"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_a_reference_of_other_types(reference: Any, problem: str, traced: bool) -> None:
    kernel = declared(reference)
    call = tracegraph.jit(lambda x: kernel(x), device="host") if traced else kernel
    with pytest.raises(errors.KernelResultError, match=problem):
        call(X)


def test_a_reference_with_another_number_of_results() -> None:
    kernel = declared(lambda x: x, out=lambda x: (x, x))
    with pytest.raises(errors.KernelResultError, match="declared a tuple of 2, returned one value"):
        kernel(X)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"source": None}, "either source= or a compiled kernel"),
        ({"compiled": 3}, "either source="),
        ({"source": None, "compiled": 3}, "as a compiled kernel; give a cuda.core.Kernel"),
        ({"source": 3}, "source must be text"),
        ({"entry": "f<float>"}, "entry= must be the name of the function"),
        ({"scalars": {"n": "int32"}}, "scalars has 'n', which is none of"),
        ({"scalars": {"x": "complex64"}}, "cannot be passed by value"),
        ({"aliases": {0: "y"}}, "must map numbers of outputs to arrays"),
        ({"aliases": {0: 1}}, "must map numbers of outputs to arrays"),
        ({"aliases": {0: "x", 1: "x"}}, "writes two outputs over x"),
        ({"batching": "parallel"}, "batching must be a function or"),
        ({"batching": np.zeros(2)}, "batching must be a function or"),
        ({"reference": lambda *x: x}, r"takes \*x; a kernel has positional"),
        ({"reference": 3}, "decorates a function of NumPy arrays, not 3"),
    ],
)
def test_declarations_that_cannot_work(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(errors.CustomKernelError, match=problem):
        declared(**given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"out": lambda x: None}, "out must give an ArrayType or a tuple of them, not None"),
        ({"out": lambda x: ()}, "out must give an ArrayType"),
        ({"out": lambda x: (x, 3)}, "out must give ArrayTypes, not 3"),
        ({"grid": 0}, r"grid=\(0, 1, 1\) has no blocks, which cannot write f64\[6\]"),
        ({"grid": -1}, "grid must be of integers of at least 0"),
        ({"grid": 1.5}, r"not 1.5"),
        ({"grid": (1, 2, 3, 4)}, "has 4 extents; give one to three"),
        ({"grid": (1, 70_000)}, "is too large: the limits are"),
        ({"block": 2048}, "is too large"),
        ({"block": (64, 32)}, r"has 2048 threads; a block has 1 to 1024"),
        ({"block": 0}, "has 0 threads"),
        ({"cluster": 2}, r"is not made of whole clusters of \(2, 1, 1\)"),
        ({"shared_memory": "48 KiB"}, "shared_memory must be of integers"),
        ({"source": lambda x: 3}, "source must be text, or a function that returns it, not 3"),
        ({"aliases": {1: "x"}}, "aliases has output 1; it has 1"),
        ({"aliases": {0: "x"}, "out": ArrayType("f4", (6,))}, "cannot be written over x"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_calls_that_cannot_be_launched(given: dict[str, Any], problem: str, traced: bool) -> None:
    kernel = declared(**given)
    call = tracegraph.jit(lambda x: kernel(x), device="host") if traced else kernel
    with pytest.raises(errors.CustomKernelError, match=problem) as caught:
        call(X)
    if traced:
        assert "at test_custom_kernels.py:" in str(caught.value)


def test_an_empty_grid_for_empty_outputs() -> None:
    kernel = declared(lambda x: x + 1, grid=lambda x: x.size)
    assert kernel(X[:0]).shape == (0,)
    lowered = tracegraph.jit(lambda x: kernel(x), device="cuda").lower(X[:0])
    assert not lowered.nodes


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((), r"missing a required argument: 'x'; it takes \(x, a\)"),
        ((X, 1, 2), "too many positional arguments"),
        ((X, 2.5), "a is a i32, which cannot hold 2.5"),
        ((X, 2**31), "a is a i32, which cannot hold 2147483648"),
        ((X, np.int64(2**32)), "a is a i32, which cannot hold"),
        ((X, "2"), "a must be a number, not '2'"),
        ((X, X), "a must be a number, not an array of type f64"),
        ((object(), 1), "argument x: dtype object is not supported"),
    ],
)
def test_arguments_that_do_not_fit(args: tuple[Any, ...], problem: str) -> None:
    kernel = declared(lambda x, a: x, out=lambda x, a: x, scalars={"a": "int32"})
    with pytest.raises(errors.CustomKernelError, match=problem):
        kernel(*args)


def test_a_traced_scalar_is_not_known_by_value() -> None:
    with pytest.raises(errors.CustomKernelError, match="a is passed by value") as caught:
        tracegraph.jit(lambda a, x: saxpy(a, x, x), device="host")(2.0, X)
    assert "take a out of scalars" in str(caught.value)
    assert "argument a" in str(caught.value)


# programs


def test_equal_calls_are_one_and_unused_ones_none() -> None:
    def f(x: Any) -> Any:
        incremented(x * 2)
        return saxpy(1.0, x, x) + saxpy(1.0, x, x) + saxpy(-0.0, x, x) + saxpy(0.0, x, x)

    optimized = tracegraph.jit(f, device="host").trace(X).optimized
    calls = [eqn for eqn in optimized.body.eqns if eqn.op.name == "custom_kernel"]
    assert [str(eqn.attrs["call"]) for eqn in calls] == [
        "saxpy(a=1.0)",
        "saxpy(a=-0.0)",
        "saxpy(a=0.0)",
    ]


def test_a_program_names_the_kernel_and_the_line() -> None:
    text = str(tracegraph.jit(lambda x: saxpy(2.0, x, x), device="host").trace(X))
    assert "custom_kernel[call=saxpy(a=2.0)]" in text
    assert "# test_custom_kernels.py:" in text


# vmap


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 0)])
def test_lanes_one_by_one(axes: Any) -> None:
    x = np.arange(9.0).reshape(3, 3)
    found = tracegraph.vmap(lambda x, y: saxpy(2.0, x, y), in_axes=axes)(
        *[x if axis is not None else x[1] for axis in axes]
    )
    a, b = [x[[1, 1, 1]] if axis is None else np.moveaxis(x, axis, 0) for axis in axes]
    np.testing.assert_array_equal(found, 2 * a + b)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_lanes_by_a_rule(axes: Any) -> None:
    x, shift = np.arange(24.0).reshape(2, 3, 4), np.arange(2)
    given = [v if axis is not None else v[1] for v, axis in zip((x, shift), axes, strict=True)]
    found = tracegraph.jit(tracegraph.vmap(doubled_rows, in_axes=axes), device="host")(*given)
    sums = 2 * (x if axes[0] == 0 else x[[1, 1]]).sum(axis=-1)
    shifts = shift if axes[1] == 0 else shift[[1, 1]]
    np.testing.assert_array_equal(np.asarray(found), sums + shifts[:, np.newaxis])


def test_lanes_in_a_loop_of_each_lane() -> None:
    def until(limit: Any, y: Any) -> Any:
        return tracegraph.while_loop(lambda y: y[0] < limit, lambda y: saxpy(1.0, y, y), y)

    limits, y = np.array([3.0, 100.0, 0.5]), np.ones((3, 2))
    found = tracegraph.jit(tracegraph.vmap(until), device="host")(limits, y)
    np.testing.assert_array_equal(np.asarray(found)[:, 0], [4, 128, 1])


def test_what_says_nothing_of_lanes_is_an_error() -> None:
    with pytest.raises(errors.CustomKernelError, match="kernel incremented") as caught:
        tracegraph.vmap(incremented)(np.ones((2, 3)))
    assert 'batching="sequential"' in str(caught.value)
    # it is applied once for all lanes if it has none of its own
    found = tracegraph.vmap(lambda x: x + incremented(X[:2]))(np.ones((3, 2)))
    np.testing.assert_array_equal(found, [[2, 3]] * 3)


def test_a_rule_that_returns_other_types() -> None:
    kernel = declared(lambda x: x, batching=lambda lanes, batched, x: x.sum(axis=0))
    with pytest.raises(
        errors.CustomKernelError, match=r"must return f64\[2,3\].*returned f64\[3\]"
    ):
        tracegraph.vmap(kernel)(np.ones((2, 3)))


# derivatives


def test_a_function_around_it_may_have_one() -> None:
    @tracegraph.custom_jvp
    def plus_one(x: Any) -> Any:
        return incremented(x)

    plus_one.defjvp(lambda primals, tangents: (plus_one(*primals), 5 * tangents[0]))
    np.testing.assert_array_equal(
        np.asarray(tracegraph.grad(lambda x: plus_one(x * x).sum())(X)), 10 * X
    )

    @tracegraph.custom_vjp
    def clipped(x: Any) -> Any:
        return incremented(x)

    clipped.defvjp(lambda x: (incremented(x), x), lambda x, ct: (incremented(ct),))
    gradient = tracegraph.jit(tracegraph.grad(lambda x: clipped(x).sum()), device="host")(X)
    np.testing.assert_array_equal(np.asarray(gradient), np.full(6, 2.0))


def test_every_program_has_a_kernel() -> None:
    for program in PROGRAMS:
        traced = tracegraph.jit(program.function, device="host").trace(*program.arguments)
        assert "custom_kernel" in str(traced)
        assert tree.leaves(program.function(*program.arguments))


# check_kernel


def test_check_kernel_compares_with_the_reference() -> None:
    check_kernel(saxpy, 2.0, X, X, device="host")
    check_kernel(lif, X.astype("f4"), X.astype("f4"), 0.5, 6, device="host")
    with pytest.raises(TypeError, match=r"takes what tracegraph\.kernel returns, not function"):
        check_kernel(lambda x: x, X)


def test_check_kernel_finds_what_differs() -> None:
    calls = []

    def changing(x: Any) -> Any:
        calls.append(x)
        return x + len(calls)

    with pytest.raises(AssertionError, match="result"):
        check_kernel(declared(changing), X, device="host")


def test_check_kernel_says_that_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowering.cuda import open_devices

    def missing(ordinal: int) -> None:
        raise RuntimeError(f"cuda:{ordinal} cannot be used: no driver")

    monkeypatch.setattr(open_devices, "open_device", missing)
    with pytest.raises(RuntimeError, match="cuda:0 cannot be used") as caught:
        check_kernel(saxpy, 2.0, X, X)
    assert "check_kernel runs <kernel saxpy" in str(caught.value.__notes__)
