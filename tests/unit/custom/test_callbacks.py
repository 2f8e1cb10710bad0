"""Callbacks by every way of running a program without a GPU, and what they refuse."""

from __future__ import annotations

import ctypes
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.threads import collect_garbage
from tests.helpers.traced import trace
from tracegraph import ArrayType, debug, errors, pure_callback, tree
from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir import interpret
from tracegraph.ir.verify import verify
from tracegraph.passes import cse, dce, fold, inline, optimize, simplify, tidy_captures

pytestmark = pytest.mark.usefixtures("each_host")

X = np.array([1.0, 2.0, 3.0])
F64, VECTOR = ArrayType(np.dtype(np.float64)), ArrayType(np.dtype(np.float64), (3,))
PASSES = [dce, fold, tidy_captures, inline, simplify, cse, optimize]
DTYPES = tuple(SHORT_NAMES)


class Log:
    """What callbacks were called with, and from which lines."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self.calls.append(tree.map(lambda x: (x.dtype, x.shape, x.tolist()), (args, kwargs)))

    def take(self) -> list[Any]:
        taken, self.calls = self.calls, []
        return taken


def assert_same_calls(log: Log, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Require the calls and results of the eager run of every other way."""
    expected = function(*args)
    wanted = log.take()
    traced = trace(function, *args)
    assert log.take() == [], "called while tracing"
    for variant in (traced, *(verify(pass_(traced)) for pass_ in PASSES)):
        interpret.run(variant, *map(np.asarray, tree.leaves(args)))
        assert log.take() == wanted
    jitted = tracegraph.jit(function, device="host")
    for _ in range(2):
        found = jitted(*args)
        assert log.take() == wanted
    tree.map(np.testing.assert_array_equal, found, expected)
    return wanted


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_values_of_any_dtype_and_shape_arrive(dtype: Any, shape: tuple[int, ...]) -> None:
    log, x = Log(), np.ones(shape, dtype)

    def f(x: Any) -> Any:
        debug.callback(log, x, [x, {"again": x}], named=x)
        return x

    ((args, kwargs),) = assert_same_calls(log, f, x)
    got = (np.dtype(dtype), shape, x.tolist())
    assert tree.leaves((args, kwargs)) == tree.leaves(
        ((got, [got, {"again": got}]), {"named": got})
    )


def test_calls_come_in_program_order_in_loops_and_branches() -> None:
    log = Log()

    def f(x: Any) -> Any:
        debug.callback(log, -1)

        def step(i: Any, x: Any) -> Any:
            debug.callback(log, i, x)

            def even() -> Any:
                debug.callback(log, i, even=True)
                return x + 1

            def row(total: Any, element: Any) -> Any:
                debug.callback(log, total, element)
                return total + element, None

            x = tracegraph.cond(i % 2 == 0, even, lambda: x * 2)
            return x + tracegraph.scan(row, 0.0, x)[0]

        return tracegraph.fori_loop(0, 4, step, x)

    assert len(assert_same_calls(log, f, X)) == 1 + 4 * 4 + 2


def test_answers_are_computed_in_loops_branches_and_conditions() -> None:
    log = Log()

    def half(x: Any, n: Any) -> Any:
        log(x, n)
        return x / 2, {"n": n + 1}

    types = (VECTOR, {"n": ArrayType(np.dtype(np.int64))})

    def f(x: Any) -> Any:
        def step(state: Any) -> Any:
            x, n = state
            x, more = pure_callback(half, types, x, n=n)
            return tracegraph.cond(
                x[0] < 0.4, lambda: pure_callback(np.flip, VECTOR, x), lambda: x
            ), more["n"]

        def goes_on(state: Any) -> Any:
            return pure_callback(lambda x: x.max() > 0.2, ArrayType(np.dtype(bool)), state[0])

        return tracegraph.while_loop(goes_on, step, (x, 0))

    wanted = assert_same_calls(log, f, X)
    assert [args[1][2] for args, _ in wanted] == [0, 1, 2, 3]


def test_functions_get_arrays_of_their_own() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> None:
        kept.append(x)
        x += 1

    @tracegraph.jit(device="host")
    def f(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            debug.callback(keep, x)
            return x + i

        return tracegraph.fori_loop(0, 3, step, x)

    given = X.copy()
    np.testing.assert_array_equal(f(given), X + 3)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(kept, [X + 1, X + 1, X + 2])
    debug.callback(keep, given)
    np.testing.assert_array_equal(given, X)


def test_unused_answers_are_not_asked_for_and_equal_calls_are_one_each() -> None:
    log = Log()

    def f(x: Any) -> Any:
        pure_callback(lambda x: log(x), None, x)
        pure_callback(lambda x: (log(x), x)[1], VECTOR, x)
        return x

    tracegraph.jit(f, device="host")(X)
    assert log.take() == []


def test_python_numbers_take_the_declared_dtype() -> None:
    types = (ArrayType(np.dtype(np.float32)), ArrayType(np.dtype(np.int8)), np.zeros(2, bool))
    a, b, c = pure_callback(lambda: (1, 2, np.array([True, False])), types)
    assert (a.dtype, b.dtype, c.tolist()) == (np.float32, np.int8, [True, False])


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        (
            X[:2],
            errors.CallbackResultError,
            "result of .* must be of type f64\\[3\\], but it is f64\\[2\\]",
        ),
        (X.astype("f4"), errors.CallbackResultError, "but it is f32\\[3\\]"),
        ("text", errors.CallbackResultError, "must be of type f64\\[3\\]"),
        ((X,), errors.CallbackStructureError, "structure \\*, .* but has \\(\\*,\\)"),
    ],
)
@pytest.mark.parametrize(
    "run", [lambda f: f, lambda f: tracegraph.jit(f, device="host")], ids=["eager", "jit"]
)
def test_what_is_returned_must_have_the_declared_types(
    returned: Any, kind: Any, message: str, run: Any
) -> None:
    with pytest.raises(kind, match=message):
        run(lambda x: pure_callback(lambda x: returned, VECTOR, x))(X)


def test_an_error_has_the_traceback_of_the_function_and_the_program_stays_usable() -> None:
    bad = [True]

    def check(x: Any) -> None:
        if bad[0]:
            raise OSError("disk full")

    for callback in (
        lambda x: debug.callback(check, x),
        lambda x: pure_callback(lambda x: (check(x), x)[1], VECTOR, x),
    ):
        jitted = tracegraph.jit(
            lambda x, c=callback: (x if (y := c(x)) is None else y) * 2, device="host"
        )
        with pytest.raises(OSError, match="disk full") as caught:
            jitted(X)
        assert "check" in [frame.name for frame in traceback.extract_tb(caught.tb)]
        bad[0] = False
        np.testing.assert_array_equal(jitted(X), X * 2)
        bad[0] = True


def test_functions_may_run_jitted_functions_and_the_one_that_calls_them() -> None:
    depth = []

    def deeper(n: Any) -> Any:
        depth.append(int(n))
        return np.asarray(f(n - 1)) if n else n

    @tracegraph.jit(device="host")
    def f(n: Any) -> Any:
        return pure_callback(deeper, ArrayType(np.dtype(np.int64)), n) + 1

    assert int(f(3)) == 4
    assert depth == [3, 2, 1, 0]


def test_functions_live_as_long_as_the_program_that_calls_them() -> None:
    def f(x: Any) -> Any:
        def inner(x: Any) -> None:
            pass

        alive.append(weakref.ref(inner))
        debug.callback(inner, x)
        return pure_callback(lambda x, inner=inner: x, VECTOR, x)

    alive: list[Any] = []
    jitted = tracegraph.jit(f, device="host")
    jitted(X)
    collect_garbage()
    assert alive[0]() is not None
    del jitted
    collect_garbage()
    assert alive[0]() is None


# -- transforms ---------------------------------------------------------------------------------


def test_each_lane_makes_its_calls_in_the_order_of_lanes() -> None:
    log = Log()

    def lane(x: Any, y: Any) -> Any:
        return tracegraph.cond(x > 1, lambda: (debug.callback(log, x, y), x)[1], lambda: -x)

    for run in (lambda f: f, lambda f: tracegraph.jit(f, device="host")):
        run(tracegraph.vmap(lane, in_axes=(0, None)))(X, 5)
        assert [args[0][2] for args, _ in log.take()] == [2.0, 3.0]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("jitted", [False, True])
def test_answers_for_lanes(method: Any, jitted: bool) -> None:
    shapes = []

    def total(x: Any, y: Any, z: Any) -> Any:
        shapes.append((x.shape, y.shape, z.shape))
        return x + np.sum(y, -1) + z, x * 2

    def lane(x: Any, y: Any, z: Any) -> Any:
        return pure_callback(total, (F64, F64), x, y, z, vmap_method=method)

    y = np.arange(2.0)
    mapped: Any = tracegraph.vmap(lane, in_axes=(0, None, None))
    mapped = tracegraph.jit(mapped, device="host") if jitted else mapped
    sums, doubles = mapped(X, y, 1.0)
    np.testing.assert_array_equal(sums, X + 2)
    np.testing.assert_array_equal(doubles, X * 2)
    assert (
        shapes
        == {
            "sequential": [((), (2,), ())] * 3,
            "expand_dims": [((3,), (1, 2), (1,))],
            "broadcast_all": [((3,), (3, 2), (3,))],
        }[method]
    )


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_answers_for_lanes_of_lanes_and_in_branches(method: Any) -> None:
    def half(x: Any) -> Any:
        return x / 2

    def lane(x: Any) -> Any:
        return tracegraph.cond(
            x > 2, lambda: pure_callback(half, F64, x, vmap_method=method), lambda: -x
        )

    x = np.arange(6.0).reshape(2, 3)
    mapped = tracegraph.vmap(tracegraph.vmap(lane))
    for run in (mapped, tracegraph.jit(mapped, device="host")):
        np.testing.assert_array_equal(run(x), np.where(x > 2, x / 2, -x))


def test_dead_lanes_are_not_called_for_one_by_one() -> None:
    asked = []

    def half(x: Any) -> Any:
        asked.append(float(x))
        return x / 2

    def lane(x: Any) -> Any:
        return tracegraph.cond(
            x > 1, lambda: pure_callback(half, F64, x, vmap_method="sequential"), lambda: x
        )

    tracegraph.jit(tracegraph.vmap(lane), device="host")(X)
    assert asked == [2.0, 3.0]


def test_a_shared_answer_is_asked_for_once() -> None:
    log = Log()

    def lane(x: Any) -> Any:
        return x + pure_callback(lambda: (log(), 1.0)[1], F64)

    np.testing.assert_array_equal(tracegraph.vmap(lane)(X), X + 1)
    assert len(log.take()) == 1


def test_vmap_needs_a_method() -> None:
    with pytest.raises(
        errors.CallbackBatchError, match=r"vmap_method=.sequential[\s\S]*test_callbacks.py"
    ):
        tracegraph.vmap(lambda x: pure_callback(np.sin, F64, x))(X)


def test_derivatives_call_on_primals_and_need_a_rule_for_answers() -> None:
    log = Log()

    def f(x: Any) -> Any:
        debug.callback(log, x)
        return x * x

    assert float(tracegraph.grad(f)(3.0)) == 6.0
    assert [args[0][2] for args, _ in log.take()] == [3.0]
    with pytest.raises(errors.DerivativeError, match=r"sin.*custom_jvp.*custom_vjp"):
        tracegraph.grad(lambda x: pure_callback(np.sin, F64, x))(1.0)

    @tracegraph.custom_jvp
    def sine(x: Any) -> Any:
        return pure_callback(np.sin, F64, x)

    sine.defjvp(lambda primals, tangents: (sine(*primals), tangents[0] * np.cos(primals[0])))
    assert float(tracegraph.grad(sine)(1.0)) == np.cos(1.0)
    assert float(tracegraph.jit(tracegraph.grad(sine), device="host")(1.0)) == np.cos(1.0)


# -- C functions --------------------------------------------------------------------------------

LIBC = ctypes.CDLL(None)
COPY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def test_c_functions_run_at_their_place_in_the_program(capfd: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        tracegraph.host_call(LIBC.perror, b"one\0")
        tracegraph.host_call(LIBC.perror, bytearray(b"two\0"))
        return x + 1

    for run in (f, tracegraph.jit(f, device="host")):
        assert float(run(1.0)) == 2.0
        lines = [line.partition(":")[0] for line in capfd.readouterr().err.splitlines()]
        assert lines == ["one", "two"]
    assert float(tracegraph.vmap(f)(X)[0]) == 2.0
    assert capfd.readouterr().err.count("one") == 1


def test_data_is_copied_and_addresses_are_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    data, kept = bytearray(b"before\0"), ctypes.create_string_buffer(b"address")

    def f(x: Any) -> Any:
        tracegraph.host_call(LIBC.perror, data)
        tracegraph.host_call(LIBC.perror, ctypes.addressof(kept))
        tracegraph.host_call(LIBC.free)
        return x

    jitted = tracegraph.jit(f, device="host")
    jitted(1.0)
    data[:] = b"after.\0"
    kept.value = b"changed"
    jitted(1.0)
    lines = [line.partition(":")[0] for line in capfd.readouterr().err.splitlines()]
    assert lines == ["before", "address", "before", "changed"]


@pytest.mark.parametrize(
    "pointer",
    [
        lambda kept: ctypes.c_void_p(ctypes.addressof(kept)),
        lambda kept: ctypes.pointer(kept),
        lambda kept: ctypes.cast(kept, ctypes.POINTER(ctypes.c_char)),
        lambda kept: ctypes.cast(kept, ctypes.c_char_p),
        lambda kept: np.uint64(ctypes.addressof(kept)),
        lambda kept: np.int64(ctypes.addressof(kept)),
    ],
)
def test_pointers_are_passed_on(pointer: Any, capfd: pytest.CaptureFixture[str]) -> None:
    kept = ctypes.create_string_buffer(b"before")

    def f(x: Any) -> Any:
        tracegraph.host_call(LIBC.perror, pointer(kept))
        return x

    jitted = tracegraph.jit(f, device="host")
    jitted(1.0)
    kept.value = b"after"
    jitted(1.0)
    f(1.0)
    lines = [line.partition(":")[0] for line in capfd.readouterr().err.splitlines()]
    assert lines == ["before", "after", "after"]


def test_what_a_pointer_points_to_lives_as_long_as_the_program(
    capfd: pytest.CaptureFixture[str],
) -> None:
    kept = (ctypes.c_char * 8).from_buffer_copy(b"pointed\0")
    alive = weakref.ref(kept)
    given = [ctypes.pointer(kept)]

    def f(x: Any) -> Any:
        tracegraph.host_call(LIBC.perror, given[0])
        return x

    compiled = tracegraph.jit(f, device="host").lower(1.0).compile()
    del kept, given[:]
    collect_garbage()
    assert alive() is not None
    compiled(1.0)
    assert capfd.readouterr().err.startswith("pointed:")
    del compiled
    collect_garbage()
    assert alive() is None


def test_null_pointers_are_null() -> None:
    for null in (None, 0, ctypes.c_void_p(), ctypes.POINTER(ctypes.c_int)(), np.uint64(0)):
        tracegraph.host_call(LIBC.free, null)


class Table(ctypes.Structure):
    """Functions as a library hands them out."""

    _fields_ = (("first", COPY), ("second", COPY * 2))


FREE = COPY(ctypes.cast(LIBC.free, ctypes.c_void_p).value)
IN_PYTHON = COPY(lambda address: None)
TABLE = Table(IN_PYTHON, (COPY * 2)(FREE, IN_PYTHON))


@pytest.mark.parametrize(
    "hidden",
    [
        lambda: TABLE.first,
        lambda: TABLE.second[1],
        lambda: (COPY * 1)(IN_PYTHON)[0],
        lambda: ((COPY * 1) * 2)((COPY * 1)(IN_PYTHON))[0][0],
        lambda: ctypes.pointer(IN_PYTHON).contents,
        lambda: ctypes.pointer(IN_PYTHON)[0],
        lambda: ctypes.pointer(TABLE).contents.first,
        lambda: ctypes.cast(IN_PYTHON, ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
    ],
)
def test_python_functions_are_found_behind_fields_and_elements(hidden: Any) -> None:
    for run in (lambda f: f(), trace):
        with pytest.raises(errors.HostCallError, match=r"calls a Python function.*GIL"):
            run(lambda: tracegraph.host_call(hidden()))


def test_c_functions_beside_python_functions_are_called() -> None:
    tracegraph.host_call(TABLE.second[0])
    tracegraph.host_call((COPY * 2)(IN_PYTHON, FREE)[1])


def declared(result: Any, *arguments: Any) -> Any:
    function = ctypes.CDLL(None).free
    function.restype, function.argtypes = result, arguments
    return function


@pytest.mark.parametrize(
    ("result", "argument"),
    [
        (None, ctypes.c_void_p),
        (None, ctypes.c_char_p),
        (None, ctypes.POINTER(ctypes.c_double)),
        (ctypes.c_int, ctypes.POINTER(Table)),
        (ctypes.c_void_p, np.ctypeslib.ndpointer(np.float64)),
    ],
)
def test_functions_of_a_pointer_are_called(result: Any, argument: Any) -> None:
    tracegraph.host_call(declared(result, argument))
    tracegraph.jit(lambda x: (tracegraph.host_call(declared(result, argument)), x)[1])(1.0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (declared(ctypes.c_double, ctypes.c_double), "take a void .*, and is declared with c_doub"),
        (declared(None, ctypes.c_double), r"declared with c_double; declare it.*argtypes = \[cty"),
        (declared(None, ctypes.py_object), "declared with py_object"),
        (declared(None, ctypes.c_int), "declared with c_int"),
        (declared(None, ctypes.c_uint64), "declared with c_ulong"),
        (declared(None, Table), "declared with Table"),
        (declared(None), "must take one argument, a void .*, and is declared with 0"),
        (declared(ctypes.c_double, ctypes.c_void_p), "declared to return c_double"),
        (declared(ctypes.c_longdouble, ctypes.c_void_p), "declared to return c_longdouble"),
        (declared(ctypes.py_object, ctypes.c_void_p), "declared to return py_object"),
        (declared(Table, ctypes.c_void_p), "declared to return Table"),
        (declared(lambda code: code, ctypes.c_void_p), "declared to return"),
        (ctypes.CFUNCTYPE(None, ctypes.c_float)(1 << 40), "declared with c_float"),
    ],
)
def test_functions_of_other_types_are_refused(function: Any, message: str) -> None:
    for run in (lambda f: f(), trace):
        with pytest.raises(errors.HostCallError, match=message):
            run(lambda: tracegraph.host_call(function))


TWO = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@pytest.mark.parametrize(
    ("function", "data", "message"),
    [
        (print, None, "is a Python function.*debug.callback"),
        (COPY(lambda address: None), None, "calls a Python function.*GIL"),
        (ctypes.pythonapi.PyErr_Clear, None, "Python's C API"),
        (COPY(), None, "is null"),
        (TWO(ctypes.cast(LIBC.free, ctypes.c_void_p).value), None, "declared with 2"),
        (12345, None, "function pointer of ctypes"),
        (LIBC.free, "text", "user_data must be bytes, an address or None, not 'text'"),
        (LIBC.free, print, "use tracegraph.debug.callback"),
        (LIBC.free, True, "user_data must be"),
        (LIBC.free, -1, "an address of 64 bits, not -1"),
        (LIBC.free, np.int64(-1), "an address of 64 bits, not -1"),
        (LIBC.free, np.bool_(True), "user_data must be"),
        (LIBC.free, ctypes.byref(ctypes.c_int()), "ctypes.byref.*pass ctypes.pointer"),
        (LIBC.free, ctypes.c_uint64(8), "pass x.value if it is an address, ctypes.pointer"),
        (LIBC.free, ctypes.c_ssize_t(8), "or bytes.x. for a copy of it"),
        (LIBC.free, ctypes.py_object(1), "user_data must be"),
        (LIBC.free, IN_PYTHON, "use tracegraph.debug.callback"),
    ],
)
def test_what_no_host_node_can_call(function: Any, data: Any, message: str) -> None:
    for run in (lambda f: f(), trace):
        with pytest.raises(errors.HostCallError, match=message):
            run(lambda: tracegraph.host_call(function, data))


def test_no_c_function_in_bodies() -> None:
    def called(x: Any) -> Any:
        tracegraph.host_call(LIBC.free)
        return x

    for f, construct in (
        (lambda x: tracegraph.fori_loop(0, 2, lambda i, x: called(x), x), "fori_loop"),
        (lambda x: tracegraph.cond(x > 0, called, lambda x: x, x), "cond"),
        (lambda x: tracegraph.scan(lambda c, _: (called(c), None), x, X)[0], "scan"),
    ):
        message = (
            f"free is called inside {construct}.*debug.callback(.|\n)*test_callbacks.py:.*called"
        )
        with pytest.raises(errors.HostCallInBodyError, match=message):
            tracegraph.jit(f, device="host")(1.0)


# -- misuse -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: debug.callback(3), errors.NotCallableError, "debug.callback"),
        (lambda: debug.callback(print, "text"), errors.LeafTypeError, "debug.callback"),
        (lambda: pure_callback(3, F64), errors.NotCallableError, "pure_callback"),
        (lambda: pure_callback(print, F64, object()), errors.LeafTypeError, "pure_callback"),
        (lambda: pure_callback(print, (F64, "f64")), errors.CallbackTypesError, r"result\[1\]"),
        (
            lambda: pure_callback(print, F64, vmap_method="all"),
            errors.CallbackTypesError,
            "sequential",
        ),
        (lambda: pure_callback(print, F64, time_limit=0), errors.CallbackTypesError, "positive"),
        (lambda: pure_callback(print, F64, time_limit="1"), errors.CallbackTypesError, "seconds"),
    ],
)
def test_arguments_that_cannot_be_used(call: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    "effect", [lambda: debug.callback(print), lambda: tracegraph.host_call(LIBC.free)]
)
def test_no_effects_in_conditions_of_loops(effect: Any) -> None:
    with pytest.raises(errors.EffectInConditionError, match=r"debug.callback|host_call"):
        trace(
            lambda n: tracegraph.while_loop(lambda n: (effect(), n < 3)[1], lambda n: n + 1, n), 0
        )
