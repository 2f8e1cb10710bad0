"""The array API standard 2024.12: the names and signatures of its table, and values of its own.

Source: https://data-apis.org/array-api/2024.12/API_specification/
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.array_api_signatures import EXTENSION, STANDARD
from tracegraph import errors
from tracegraph.dtypes import bfloat16
from tracegraph.tracing.tracer import Tracer

VALUES = """
e inf nan newaxis pi __array_api_version__
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
"""

MEMBERS = """
__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__
__eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__
__lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__
__setitem__ __sub__ __truediv__ __xor__ to_device dtype device mT ndim shape size T
"""

LEFT_OUT_WHILE_TRACING = {
    "__dlpack__": "a traced value has no memory",
    "__dlpack_device__": "a traced value has no memory",
}

X = np.array([[3, 1, 2], [0, 5, 4]])
F = X.astype(np.float32)


@pytest.mark.parametrize("name", [*STANDARD, *EXTENSION])
def test_a_function_takes_the_arguments_of_the_standard(name: str) -> None:
    function = attrgetter(name)(tnp)
    parameters = {**STANDARD, **EXTENSION}[name].parameters.values()
    keywords = {p.name: None for p in parameters if p.kind is p.KEYWORD_ONLY}
    positional = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    either = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    taken = inspect.signature(function)
    taken.bind(*[None for _ in positional + either], **keywords)
    taken.bind(*[None for _ in positional], **{p.name: None for p in either}, **keywords)
    # tools read signatures, where a **kwargs that takes a parameter does not show it
    assert set(keywords) <= set(taken.parameters)
    shown = list(taken.parameters)[len(positional) : len(positional) + len(either)]
    assert shown == [p.name for p in either]


def test_constants_and_dtypes_are_there() -> None:
    assert not [name for name in VALUES.split() if not hasattr(tnp, name)]
    assert tnp.__array_api_version__ == "2024.12"


def test_arrays_and_traced_values_have_the_members_of_the_standard() -> None:
    members = MEMBERS.split()
    assert not [name for name in members if not hasattr(tracegraph.Array, name)]
    missing = [name for name in members if not hasattr(Tracer, name)]
    assert missing == [*LEFT_OUT_WHILE_TRACING]


def agree(found: Any, expected: Any) -> None:
    found = np.asarray(found)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected, strict=True)


CASES = [
    "xp.arange(start=1, stop=7, step=2, device=device)",
    "xp.arange(1, stop=7, device=device)",
    "xp.arange(5, step=2, device=device)",
    "xp.arange(5, None, 2, device=device)",
    "xp.arange(3, 0, -1, dtype=xp.float32, device=device)",
    "xp.arange(0, 1, 0.25, device=device)",
    "xp.asarray([[1, 2], [3, 4]], dtype=xp.int8, device=device)",
    "xp.asarray(f, dtype=xp.float64, device=device)",
    "xp.astype(x, xp.float32, device=device)",
    "xp.empty((2, 0), dtype=None, device=device)",
    "xp.eye(2, 3, k=1, dtype=None, device=device)",
    "xp.full((2, 3), 7, device=device)",
    "xp.full(2, True, dtype=None, device=device)",
    "xp.full_like(x, 7, device=device)",
    "xp.identity(2, device=device)",
    "xp.linspace(0, 1, num=5, endpoint=False, device=device)",
    "xp.ones((), dtype=xp.uint8, device=device)",
    "xp.ones_like(f, dtype=xp.int16, device=device)",
    "xp.zeros(3, dtype=xp.complex64, device=device)",
    "xp.zeros_like(x, device=device)",
]


@pytest.mark.parametrize("case", CASES)
def test_new_arrays_are_on_the_device(case: str) -> None:
    plain = case.replace(", device=device", "")
    expected = eval(plain, {"xp": np, "x": X, "f": F})
    names = {"xp": tnp, "x": tracegraph.asarray(X), "f": tracegraph.asarray(F), "device": "host"}
    eager = eval(case, names)
    assert isinstance(eager, tracegraph.Array)
    assert eager.device == "host"
    agree(eager, expected)

    @tracegraph.jit(device="host")
    def traced(x: Any, f: Any) -> Any:
        return eval(case, {"xp": tnp, "x": x, "f": f, "device": x.device})

    agree(traced(X, F), expected)


def test_arrays_like_an_array_are_where_it_is() -> None:
    x = tracegraph.asarray(X)
    for made in (tnp.zeros_like(x), tnp.ones_like(x), tnp.empty_like(x), tnp.full_like(x, 2)):
        assert isinstance(made, tracegraph.Array)
        assert made.device == "host"


def test_new_arrays_of_numpy_are_on_its_own_device() -> None:
    assert isinstance(tnp.zeros(2), np.ndarray)
    assert type(tnp.arange(2, device="cpu")) is np.ndarray
    assert type(tnp.asarray(tracegraph.asarray(X), device="cpu")) is np.ndarray


def test_a_program_has_one_device() -> None:
    def elsewhere(x: Any) -> Any:
        return x + tnp.zeros(3, device="cuda:7")

    def moved(x: Any) -> Any:
        return x.to_device("cuda:7")

    for function in (elsewhere, moved):
        with pytest.raises(errors.UnsupportedByTracerError, match=r"'cuda:7'.*runs on 'host'"):
            tracegraph.jit(function, device="host")(np.ones(3))

    @tracegraph.jit(device="host")
    def same(x: Any) -> Any:
        assert x.device == "host"
        with pytest.raises(ValueError, match="stream=None"):
            x.to_device("host", stream=1)
        return tracegraph.cond(x.sum() > 0, lambda: x.to_device(x.device), lambda: x * 2)

    agree(same(np.ones(3)), np.ones(3))


@pytest.mark.parametrize(
    "make", [lambda: tnp.zeros(3, device=3), lambda: tracegraph.asarray(X).to_device(None)]
)
def test_a_device_is_a_string(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match='a device is a string such as "host"'):
        make()


def test_bounds_of_arange_may_be_arrays_that_are_not_traced() -> None:
    for bound in (np.int32(4), np.float32(2.5)):
        agree(tnp.arange(tracegraph.asarray(bound)), np.arange(bound))
        agree(tnp.arange(tracegraph.asarray(bound), 9, step=2), np.arange(bound, 9, 2))


def test_traced_values_pass_from_dlpack() -> None:
    agree(tracegraph.jit(lambda x: tnp.from_dlpack(x, device=x.device, copy=False) + 1)(X), X + 1)


def test_arange_needs_a_bound() -> None:
    with pytest.raises(TypeError, match="needs a bound"):
        tnp.arange()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tnp.asarray([1, 2], copy=False),
        lambda: tnp.asarray(1.0, copy=False),
        lambda: tnp.asarray(X, np.float32, copy=False),
        lambda: tnp.asarray(X, device="host", copy=False),
        lambda: tnp.asarray(tracegraph.asarray(X), np.float32, copy=False),
        lambda: tracegraph.asarray(X, copy=False),
        lambda: tracegraph.asarray(tracegraph.asarray(X), "float32", copy=False),
        lambda: tnp.from_dlpack(X, copy=False),
    ],
)
def test_what_needs_a_copy_raises_where_none_is_allowed(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"copy=False, but an .rray of dtype .* pass copy=None"):
        make()


def test_what_needs_no_copy_is_shared() -> None:
    x = tracegraph.asarray(X)
    for shared in (
        tnp.asarray(x, copy=False),
        tnp.asarray(x, X.dtype, copy=False, device="host"),
        tracegraph.asarray(x, copy=False, device="host"),
        tnp.from_dlpack(x, device="host", copy=False),
    ):
        assert shared is x
    assert np.shares_memory(tnp.asarray(X, copy=False), X)
    for dtype in (X.dtype, X.dtype.type, X.dtype.name):
        assert tnp.asarray(X, dtype, copy=False) is tnp.asarray(X, dtype) is X
    assert np.shares_memory(tnp.asarray(memoryview(X), copy=False), X)
    for copy in (
        tnp.asarray(X, copy=True),
        tnp.asarray(X, X.dtype, copy=True),
        tnp.array(X, X.dtype),
        tnp.astype(X, X.dtype),
        tnp.copy(X),
    ):
        assert not np.shares_memory(copy, X)


def test_copies_while_tracing() -> None:
    @tracegraph.jit(device="host")
    def f(x: Any) -> Any:
        y = tnp.asarray(x * 2, copy=False)
        z = tnp.asarray(y, copy=True)
        y[0] = 9
        with pytest.raises(ValueError, match="copy=False"):
            tnp.asarray(y, np.float32, copy=False)
        return y, z, tnp.asarray(F, copy=False)

    y, z, table = f(np.ones(2))
    agree(y, np.array([9.0, 2.0]))
    agree(z, np.array([2.0, 2.0]))
    agree(table, F)


RUNNING = [
    f"xp.cumulative_{kind}({x}{options})"
    for kind in ("sum", "prod")
    for x, options in (
        ("x", ", axis=0"),
        ("x", ", axis=-1, include_initial=True"),
        ("x[0]", ", include_initial=True"),
        ("x[0, 0]", ""),
        ("f", ", axis=1, dtype=xp.float64, include_initial=True"),
        ("x.astype(xp.uint8)", ", axis=0, include_initial=True"),
        ("x[:, :0]", ", axis=1, include_initial=True"),
    )
]


@pytest.mark.parametrize("case", RUNNING)
def test_running_sums_and_products(case: str) -> None:
    expected = eval(case, {"xp": np, "x": X, "f": F})
    agree(eval(case, {"xp": tnp, "x": X, "f": F}), expected)
    agree(eval(case, {"xp": tnp, "x": tracegraph.asarray(X), "f": tracegraph.asarray(F)}), expected)
    for xp in (tnp, np):
        traced = tracegraph.jit(lambda x, f, xp=xp: eval(case, {"xp": xp, "x": x, "f": f}))
        agree(traced(X, F), expected)


def test_running_sums_of_several_axes_need_one() -> None:
    for function in (tnp.cumulative_sum, tnp.cumulative_prod):
        with pytest.raises(ValueError, match="needs an axis"):
            function(tracegraph.asarray(X))


@pytest.mark.parametrize("name", ["all", "counts", "inverse", "values"])
@pytest.mark.parametrize(
    "x", [np.array([[2, 1], [2, 3]]), np.array([np.nan, 0.0, -0.0, np.nan]), np.array(5), X[:0]]
)
def test_distinct_elements(name: str, x: np.ndarray[Any, Any]) -> None:
    function, reference = getattr(tnp, f"unique_{name}"), getattr(np, f"unique_{name}")
    found, expected = function(tracegraph.asarray(x)), reference(x)
    if name == "values":
        found, expected = (found,), (expected,)
    else:
        assert found._fields == expected._fields
    for each, wanted in zip(found, expected, strict=True):
        assert isinstance(each, tracegraph.Array)
        agree(each, wanted)
    with pytest.raises(errors.ShapeDependentError, match=f"unique_{name} needs the elements"):
        tracegraph.jit(function)(x)


def test_nonzero_of_arrays() -> None:
    found = tnp.nonzero(tracegraph.asarray(X))
    assert isinstance(found, tuple)
    for each, wanted in zip(found, np.nonzero(X), strict=True):
        assert isinstance(each, tracegraph.Array)
        agree(each, wanted)


def test_casts_are_answered_from_dtypes() -> None:
    x = tracegraph.asarray(F)
    assert tnp.can_cast(x, np.float64)
    assert not tnp.can_cast(x, np.int32)
    assert tnp.can_cast(x, np.int32, "unsafe")
    assert tnp.can_cast(np.int8, np.int16)

    @tracegraph.jit(device="host")
    def f(x: Any) -> Any:
        assert tnp.can_cast(x, np.float64)
        assert np.can_cast(x, np.float64)
        assert not tnp.can_cast(x.dtype, np.float16)
        assert tnp.isdtype(x.dtype, ("real floating", tnp.int8))
        assert tnp.finfo(x).bits == tnp.finfo(x.dtype).bits == 32
        assert tnp.result_type(x, 1.0, np.int8) == np.float32
        return x

    f(F)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_limits_of_floats_are_read_from_dtypes_and_arrays(dtype: str) -> None:
    x = np.zeros(2, dtype)
    wanted = np.finfo(dtype)
    for given in (dtype, x.dtype, x.dtype.type, x[0], x, tracegraph.asarray(x)):
        assert tnp.finfo(given) is wanted


@pytest.mark.parametrize("dtype", [*"bhilBHIL"])
def test_limits_of_integers_are_read_from_dtypes_and_arrays(dtype: str) -> None:
    x = np.zeros(2, dtype)
    wanted = np.iinfo(dtype)
    for given in (dtype, x.dtype, x.dtype.type, x[0], x, tracegraph.asarray(x)):
        limits = tnp.iinfo(given)
        assert (limits.min, limits.max, limits.dtype) == (wanted.min, wanted.max, wanted.dtype)


def test_limits_of_bfloat16() -> None:
    x = np.zeros(2, bfloat16)
    for given in (x.dtype, bfloat16, x, tracegraph.asarray(x)):
        assert tnp.finfo(given).bits == 16
        assert tnp.finfo(given).eps == 2.0**-7


def test_dtypes_without_limits() -> None:
    for given in (np.int8, X.astype(int), tracegraph.asarray(X.astype(int))):
        with pytest.raises(ValueError, match="not inexact"):
            tnp.finfo(given)
    for given in (np.float32, F, tracegraph.asarray(F)):
        with pytest.raises(ValueError, match="Invalid integer data type"):
            tnp.iinfo(given)


def test_the_namespace_of_arrays() -> None:
    x = tracegraph.asarray(X)
    for version in (None, "2021.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is tracegraph.array_api
    with pytest.raises(ValueError, match=r"api_version='2031\.12'.*2024\.12"):
        x.__array_namespace__(api_version="2031.12")


def test_the_namespace_of_arrays_returns_no_arrays_of_numpy() -> None:
    xp = tracegraph.array_api
    assert set(xp.__all__) | {"lib"} == set(tnp.__all__)
    arrays = [xp.zeros(2), xp.asarray([1, 2]), xp.arange(3), xp.sum(X), xp.linalg.inv(np.eye(2))]
    arrays += [*xp.meshgrid([1], [2]), *xp.unique_all(X), xp.fft.fftfreq(3)]
    assert {type(x) for x in arrays} == {tracegraph.Array}
    agree(xp.unique_values(np.array([3, 1, 3, 0])), np.array([0, 1, 3]))
    assert pickle.loads(pickle.dumps(xp.fft.ifft)) is xp.fft.ifft

    def traced(x: Any) -> Any:
        y = x.__array_namespace__().zeros(3)
        y[0] = x[0]
        return y

    agree(tracegraph.jit(traced, device="host")(np.ones(3)), np.array([1.0, 0, 0]))


def test_the_namespace_describes_itself() -> None:
    info, numpys = tnp.__array_namespace_info__(), np.__array_namespace_info__()
    assert info.capabilities() == numpys.capabilities()
    assert info.default_dtypes(device="host") == numpys.default_dtypes()
    for kind in (None, "bool", "integral", "numeric", ("signed integer", "real floating")):
        assert info.dtypes(kind=kind) == numpys.dtypes(kind=kind)
    assert info.default_device() == info.devices()[0] == "host"
    with pytest.raises(ValueError, match="'floating' of dtypes is none of bool, "):
        info.dtypes(kind="floating")

    @tracegraph.jit(device="host")
    def f(x: Any) -> Any:
        assert not info.capabilities()["data-dependent shapes"]
        assert info.devices() == [x.device]
        return x

    f(X)


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "<", ">="]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("scalar", ["2", "2.0", "True", "2j"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex64"])
def test_operators_with_python_scalars(operator: str, scalar: str, dtype: str) -> None:
    x = np.array([1, 3], dtype)
    for case in (f"x {operator} {scalar}", f"{scalar} {operator} x"):
        assert_like_numpy(eval(f"lambda x: {case}"), x)


def assert_like_numpy(function: Callable[[Any], Any], x: np.ndarray[Any, Any]) -> None:
    """Values and dtype of NumPy, or its TypeError, for an Array and for a traced value."""
    runs = (lambda: function(tracegraph.asarray(x)), lambda: tracegraph.jit(function)(x))
    try:
        expected = function(x)
    except TypeError:
        for run in runs:
            with pytest.raises(TypeError):
                run()
        return
    for run in runs:
        agree_closely(run(), expected)


def agree_closely(found: Any, expected: Any) -> None:
    found = np.asarray(found)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)
