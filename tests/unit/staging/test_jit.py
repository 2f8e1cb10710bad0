"""jit: caching, arguments, results, threads. Programs run by interpretation on a fake device."""

from __future__ import annotations

import dataclasses
import inspect
import re
import threading
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.fakes.fake_device import FakeBuffer, FakeCompiler
from tests.helpers.threads import in_threads
from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.ir.types import ArrayType
from tracegraph.staging.jit import eval_shape, jit, make_program

F3 = ArrayType("float32", (3,))


pytestmark = pytest.mark.usefixtures("compiler")


def counts(function: Any) -> tuple[int, int, int]:
    stats = function.stats()
    return stats["traces"], stats["builds"], stats["launches"]


# ---- the cache ----


def test_same_types_are_traced_once() -> None:
    calls = []

    @jit
    def f(x: Any, y: Any) -> Any:
        calls.append(1)
        return x * y

    for value in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(f(np.full(3, value), value), np.full(3, value * value))
    assert len(calls) == 1
    assert counts(f) == (1, 1, 3)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.ones(3), np.ones(4)),
        (np.ones(3), np.ones(3, "float32")),
        (1, 1.0),
        (np.int64(1), 1),  # strong and weak
        (True, 1),
        ([1, 2], (1, 2)),
        ({"a": 1}, {"b": 1}),
        (None, 1),
        (2**62, 2**63),
    ],
)
def test_other_types_are_traced_anew(first: Any, second: Any) -> None:
    f = jit(lambda x: tree.leaves(x))
    f(first)
    f(second)
    f(first)
    f(second)
    assert counts(f) == (2, 2, 4)


def test_arrays_of_equal_type_share_a_program() -> None:
    f = jit(lambda x: x + 1)
    data = np.arange(3.0)
    f(data)
    f(data[::-1])
    f(Array(data.copy()))
    f(data.astype(">f8"))
    f(f(data))
    assert counts(f) == (1, 1, 6)


def test_weak_results_stay_weak() -> None:
    f = jit(lambda x: x * 2)
    assert f(1).weak
    assert f(f(1)).dtype == np.int64
    assert counts(f) == (1, 1, 3)
    assert (f(1) + np.float32(1)).dtype == np.float32
    assert not f(np.int64(1)).weak


def test_retraces_say_what_changed() -> None:
    @jit
    def step(state: Any, dt: Any) -> Any:
        return state["v"][1] * dt

    step({"v": [np.ones(2), np.ones(3)]}, 0.5)
    step({"v": [np.ones(2), np.ones(4)]}, 1)
    step({"v": [np.ones(2)] * 3}, 1)
    assert step.stats()["retraces"] == (
        "state['v'][1]: f64[3] -> f64[4], dt: ~f64[] -> ~i64[]",
        "the structure of the arguments changed from {'v': [f64[2], f64[4]]}, ~i64[] to "
        "{'v': [f64[2], f64[2], f64[2]]}, ~i64[]",
    )


def test_another_device_is_a_build_of_its_own() -> None:
    f = jit(lambda x: x + 1)
    f(np.ones(2))
    f(asarray(np.ones(2), device="fake:0"))
    assert counts(f) == (2, 2, 2)
    assert f.stats()["retraces"] == ("device: host -> fake:0",)


def test_stages_count_as_traces_but_not_as_builds() -> None:
    f = jit(lambda x: x + 1)
    f.lower(1.0)
    f(1.0)
    assert counts(f) == (2, 1, 1)
    assert f.stats()["retraces"] == ()


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    fail = True

    @jit
    def f(x: Any) -> Any:
        if fail:
            raise KeyError("mine")
        return x + 1

    with pytest.raises(KeyError, match="mine"):
        f(1.0)
    fail = False
    assert f(1.0) == 2.0
    assert counts(f) == (1, 1, 1)


# ---- static arguments ----


def test_static_values_select_programs() -> None:
    @jit(static_argnums=1, static_argnames=("double",))
    def f(x: Any, n: Any, *, double: bool = False) -> Any:
        for _ in range(n):
            x = x * (2 if double else 1) + 1
        return x

    assert f(1.0, 3) == 4.0
    assert f(1.0, 2, double=True) == 7.0
    assert f(5.0, 3) == 8.0
    assert f(1.0, n=3) == 4.0  # by name the position is static too
    assert f.stats()["traces"] == 3
    assert f.stats()["retraces"] == (
        "static n: 3 -> 2, static double: absent -> True",
        "the structure of the arguments changed from ~f64[], 2, double=True to ~f64[], n=3",
    )


def test_equal_static_values_of_other_classes_are_apart() -> None:
    f = jit(lambda x, n: x * n, static_argnums=1)
    x = np.int32(3)
    assert f(x, 2).dtype == np.int32
    assert f(x, 2.0).dtype == np.float64
    assert f(x, np.int64(2)).dtype == np.int64


def test_unhashable_static_is_named() -> None:
    @jit(static_argnames="shape")
    def f(x: Any, shape: Any) -> Any:
        return x

    with pytest.raises(errors.UnhashableStaticError, match=r"static argument shape of .*list"):
        f(1.0, [2, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"static_argnums": 2}, "static_argnums has 2"),
        ({"static_argnames": "z"}, r"static_argnames has 'z'.*x, y"),
        ({"donate_argnums": (5,)}, "donate_argnums has 5"),
        ({"static_argnums": 0, "donate_argnums": 0}, "both static and donated"),
        ({"static_argnums": -1, "donate_argnums": 1}, "both static and donated"),
    ],
)
def test_options_are_checked_when_decorating(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jit(lambda x, y: x, **options)


def test_static_arguments_among_any_number() -> None:
    """`*args` has no last position when the function is decorated."""

    def scaled(x: Any, *names: Any) -> Any:
        return x * len(names[0])

    assert jit(scaled, static_argnums=(1, 2))(2.0, "abc") == 6
    assert jit(scaled, static_argnums=np.int64(1))(2.0, "abc") == 6
    assert jit(scaled, static_argnums=np.array([1, 2]))(2.0, "abc", "d") == 6
    for option in ("static_argnums", "donate_argnums"):
        with pytest.raises(ValueError, match=r"has -1, but .*by \*names: count from"):
            jit(scaled, **{option: -1})
    with pytest.raises(TypeError, match=r"int or several, got 1\.5"):
        jit(scaled, static_argnums=1.5)  # type: ignore[call-overload]


def test_only_callables_are_jitted() -> None:
    with pytest.raises(TypeError, match="takes a function, got 3"):
        jit(3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="below @staticmethod"):
        jit(staticmethod(abs))


# ---- arguments and results ----


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        ("text", r"argument state\['v'\]\[1\] of .*is of type str"),
        (object(), r"state\['v'\]\[1\].*is of type object"),
        (np.array(["a"]), r"state\['v'\]\[1\].*dtype <U1"),
        (np.array([None]), r"state\['v'\]\[1\].*dtype object"),
        (np.ma.masked_array([1.0]), r"state\['v'\]\[1\].*masked"),
        (F3, r"state\['v'\]\[1\].*ArrayType"),
        (len, r"state\['v'\]\[1\].*builtin_function"),
    ],
)
def test_unsupported_arguments_are_named_by_path(value: Any, facts: str) -> None:
    def solve(state: Any) -> Any:
        return state["v"][0]

    with pytest.raises(errors.UnsupportedArgumentError, match=facts) as caught:
        jit(solve)({"v": [1.0, value]})
    assert "solve (test_jit.py:" in str(caught.value)
    assert "static_argnums" in str(caught.value)


class Refusing:
    """An array of another library, one of whose attributes raises."""

    dtype, shape = "lib.float32", (3,)

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self.error = name, error

    def __getattribute__(self, name: str) -> Any:
        get = object.__getattribute__
        if name == get(self, "name"):
            raise get(self, "error")
        return get(self, name)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Converting:
    """An array that has nothing but a conversion, which raises."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("__array__() was called on a traced array\nThe error occurred while …")


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        (Refusing("", ValueError()), "BufferError: Can't export tensors that require gradient"),
        (Refusing("__dlpack_device__", AttributeError("no device")), "AttributeError: no device"),
        (Refusing("__cuda_array_interface__", RuntimeError("grad")), "RuntimeError: grad"),
        (Refusing("__dlpack_device__", KeyError()), "KeyError: without a message"),
        (Converting(), r"TypeError: __array__\(\) was called on a traced array\)"),
    ],
)
def test_arrays_of_others_that_do_not_give_their_elements_are_named(value: Any, facts: str) -> None:
    @jit
    def solve(state: Any) -> Any:
        return state["v"][0]

    with pytest.raises(errors.UnsupportedArgumentError) as caught:
        solve({"v": [1.0, value]})
    message = str(caught.value)
    assert re.search(rf"argument state\['v'\]\[1\] of .*solve \(test_jit.py:.*{facts}", message)
    assert "outside of the other library's transformations" in message
    assert type(value).__name__ in message
    with pytest.raises(TypeError, match=rf"^x is of type .*{facts}"):
        asarray(value)
    with pytest.raises(TypeError, match="x is of type str; pass an array, a number, or nested"):
        asarray("text")
    assert float(solve({"v": [1.0, np.ones(3)]})) == 1.0


def test_variadic_arguments_are_named() -> None:
    f = jit(lambda *xs, **options: xs[0])
    with pytest.raises(errors.UnsupportedArgumentError, match=r"argument xs\[1\] of"):
        f(1, "a")
    with pytest.raises(errors.UnsupportedArgumentError, match=r"argument tol of"):
        f(1, tol="a")


@pytest.mark.parametrize("value", ["text", object(), np.array(["a"]), np.dtype("f4")])
def test_unsupported_results_are_named_by_path(value: Any) -> None:
    with pytest.raises(errors.UnsupportedResultError, match=r"result\['a'\]\[0\]"):
        jit(lambda x: {"a": [value], "b": x})(1.0)


def test_the_paths_of_results_are_written_for_errors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all results: to do so for each of many would take minutes."""
    monkeypatch.delattr(tree, "paths")
    jit(lambda x: [x, np.ones(3), 1, np.float32(2)]).lower(1.0)


def test_results_are_trees_of_arrays() -> None:
    @jit
    def f(x: Any) -> Any:
        return {"x": x, "none": None, "pair": (x + 1, 2.5), "constant": np.arange(2)}

    x = np.arange(3.0)
    got = f(x)
    assert got["none"] is None
    leaves = tree.leaves(got)
    assert [type(leaf) for leaf in leaves] == [Array] * 4
    np.testing.assert_array_equal(got["x"], x)
    np.testing.assert_array_equal(got["pair"][0], x + 1)
    np.testing.assert_array_equal(got["constant"], [0, 1])
    assert float(got["pair"][1]) == 2.5
    assert not any(np.shares_memory(leaf, x) for leaf in leaves)


def test_registered_dataclass_goes_in_and_out() -> None:
    @tree.register_dataclass
    @dataclasses.dataclass
    class Particle:
        x: Any
        v: Any
        charge: int = dataclasses.field(default=1, metadata={"static": True})

    @jit
    def push(p: Particle, dt: Any) -> Particle:
        return Particle(p.x + dt * p.v * p.charge, p.v, p.charge)

    got = push(Particle(np.zeros(2), np.ones(2), -2), 0.5)
    assert isinstance(got, Particle)
    assert got.charge == -2
    np.testing.assert_array_equal(got.x, [-1.0, -1.0])
    push(Particle(np.zeros(2), np.ones(2), 3), 0.5)
    assert push.stats()["traces"] == 2


# ---- what is wrapped ----


def test_wrapper_keeps_name_doc_and_signature() -> None:
    def solve(x: Any, *, tol: float = 1e-3) -> Any:
        """Solve it."""
        return x

    jitted = jit(solve)
    assert (jitted.__name__, jitted.__doc__) == ("solve", "Solve it.")
    assert inspect.signature(jitted) == inspect.signature(solve)


def test_methods_with_a_static_self() -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @partial(jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return x * self.factor

    two, three = Model(2.0), Model(3.0)
    assert two.apply(5.0) == 10.0
    assert three.apply(5.0) == 15.0
    assert two.apply(6.0) == 12.0
    assert two.apply.stats()["traces"] == 2
    assert two.apply.trace(1.0).program.out_types[0] == ArrayType("float64", (), True)
    assert Model.apply.trace(two, 1.0).program.in_types == two.apply.trace(1.0).program.in_types


def test_self_that_is_no_tree_is_an_argument_error() -> None:
    class Model:
        @jit
        def apply(self, x: Any) -> Any:
            return x

    with pytest.raises(errors.UnsupportedArgumentError, match="argument self of"):
        Model().apply(1.0)


def test_nested_functions_are_inlined() -> None:
    inner = jit(lambda x: x * 2)
    outer = jit(lambda x: inner(x) + inner(x + 1))
    assert outer(3.0) == 14.0
    assert counts(inner) == (0, 0, 0)
    assert counts(outer) == (1, 1, 1)


# ---- donation ----


def test_donated_arrays_are_invalid_afterwards() -> None:
    f = jit(lambda x, y: (x + y["a"], y), donate_argnums=1)
    x, a = Array(np.arange(3.0)), Array(np.ones(3))
    np.testing.assert_array_equal(f(x, {"a": a})[0], [1, 2, 3])
    assert float(x[1]) == 1.0
    for touch in (np.asarray, lambda v: v + 1, lambda v: f(v, {"a": x}), lambda v: v[0], str):
        with pytest.raises(errors.DonatedArrayError, match=r"f64\[3\].*donated"):
            touch(a)
    assert a.shape == (3,)
    assert "donated" in repr(a)


def test_donation_by_keyword() -> None:
    f = jit(lambda x, y: x + y, donate_argnums=1)
    y = Array(np.ones(2))
    f(Array(np.ones(2)), y=y)
    assert "donated" in repr(y)


def test_donating_the_same_array_twice_is_an_error() -> None:
    f = jit(lambda x, y: x + y, donate_argnums=(0, 1))
    g = jit(lambda x, y: x + y, donate_argnums=0)
    x = Array(np.ones(2))
    for function in (f, g):
        with pytest.raises(errors.DonatedArrayError, match="as two arguments"):
            function(x, x)
    np.testing.assert_array_equal(x, [1, 1])
    assert f.stats()["launches"] == 0


# ---- stages ----


def test_stages_take_types_instead_of_arrays() -> None:
    @jit
    def f(x: Any, n: Any) -> Any:
        return {"y": x * n}

    traced = f.trace(F3, n=ArrayType("int64", (), True))
    assert [str(t) for t in traced.program.in_types] == ["f32[3]", "~i64[]"]
    assert [str(t) for t in traced.program.out_types] == ["f32[3]"]
    compiled = traced.lower().compile()
    got = compiled(np.arange(3, dtype="float32"), n=2)
    np.testing.assert_array_equal(got["y"], np.array([0, 2, 4], "float32"), strict=True)
    with pytest.raises(errors.ArgumentTypesError, match=r"x: f32\[3\] -> f64\[3\]"):
        compiled(np.arange(3.0), n=2)
    assert compiled.stats()["launches"] == 1


def test_traced_program_is_the_one_before_passes() -> None:
    traced = jit(lambda x: (x * 2, x * 2)).trace(F3)
    assert len(traced.program.body.eqns) == 2
    assert len(traced.optimized.body.eqns) == 1


def test_make_program() -> None:
    program = make_program(lambda x, y: x + y["a"])(F3, {"a": np.ones(3, "float32")})
    assert [str(t) for t in program.in_types] == ["f32[3]", "f32[3]"]
    assert [e.op.name for e in program.body.eqns] == ["add"]


# ---- devices and threads ----


def test_results_stay_on_the_device(compiler: FakeCompiler) -> None:
    f = jit(lambda x: x * 2, device="fake:1")
    y = f(np.arange(3.0))
    assert y.device == "fake:1"
    g = jit(lambda x: x + 1)  # follows its argument
    z = g(y)
    assert z.device == "fake:1"
    (executable,) = (e for e in compiler.backends["fake:1"].compiled if e.arguments[0][0] is y.data)
    assert executable.launches == 1
    assert y.data.reads == 0
    np.testing.assert_array_equal(z, [1, 3, 5])


def test_host_function_takes_device_arrays(compiler: FakeCompiler) -> None:
    x = Array(FakeBuffer(np.arange(3.0), "fake:0"))
    y = jit(lambda x: x + 1, device="host")(x)
    assert y.device == "host"
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_concurrent_calls_trace_once_and_are_right() -> None:
    traced = []

    @jit
    def f(x: Any) -> Any:
        traced.append(threading.get_ident())
        return x * 2 + 1

    def work(seed: int) -> None:
        for i in range(20):
            x = np.full(5, float(seed * 100 + i))
            np.testing.assert_array_equal(f(x), x * 2 + 1)

    in_threads(8, work)
    assert len(traced) == 1
    assert counts(f) == (1, 1, 160)


def test_another_thread_is_no_part_of_a_trace_that_its_context_comes_from() -> None:
    double = jit(lambda x: x * 2)
    found = []

    @jit
    def f(x: Any) -> Any:
        work = partial(copy_context().run, lambda: found.append(double(np.ones(3))))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x + 1

    np.testing.assert_array_equal(f(np.ones(3)), [2, 2, 2])
    np.testing.assert_array_equal(found, [[2, 2, 2]])
    assert counts(double) == (1, 1, 1)  # it ran, rather than being inlined


def test_calls_that_differ_in_kind_alone_do_not_share_a_program() -> None:
    f = jit(lambda x: x + 1)
    wanted = [True, 1, 1.5, 1j, np.array(1), np.array(1.5, ">f8"), np.float32(2)]
    for x in wanted * 2:
        result = f(x)
        assert result == np.add(x, 1)
    assert f.stats()["builds"] == len({f.trace(x).program.in_types for x in wanted})


def test_a_donated_array_is_refused_by_a_call_that_was_made_before() -> None:
    f = jit(lambda x: x + 1, donate_argnums=0)
    x, y = asarray([1.0]), asarray([2.0])
    f(x)
    f(y)
    with pytest.raises(errors.DonatedArrayError, match="was donated"):
        f(y)


# ---- eval_shape ----


def test_eval_shape_gives_the_tree_of_types() -> None:
    found = eval_shape(lambda x, *, n: {"y": (x @ x, n), "none": None}, np.ones((2, 2)), n=3)
    assert found == {
        "y": (ArrayType("float64", (2, 2)), ArrayType("int64", (), weak=True)),
        "none": None,
    }
    large = ArrayType("float32", (10**6, 10**6))
    assert eval_shape(lambda x: x.sum(0), large) == ArrayType("float32", (10**6,))
    assert eval_shape(jit(lambda x: x + 1), large) == large


def test_eval_shape_computes_nothing(compiler: FakeCompiler) -> None:
    @jit
    def f(x: Any) -> Any:
        return x + 1

    assert eval_shape(f, F3) == F3
    assert counts(f) == (0, 0, 0)


def test_eval_shape_while_tracing_takes_and_uses_traced_values() -> None:
    shapes = []

    @jit
    def f(x: Any, y: Any) -> Any:
        shapes.append(eval_shape(lambda z: (z @ y, {"n": z.shape[0]}), x))
        return x.sum()

    assert float(f(np.ones((2, 3)), np.ones((3, 4)))) == 6.0
    assert shapes == [(ArrayType("float64", (2, 4)), {"n": ArrayType("int64", (), weak=True)})]
    program = make_program(f)(ArrayType("float64", (2, 3)), ArrayType("float64", (3, 4)))
    assert [eqn.op.name for eqn in program.body.eqns] == ["sum"]


def test_eval_shape_of_what_is_no_function_of_arrays() -> None:
    with pytest.raises(errors.UnsupportedArgumentError, match="argument x of"):
        eval_shape(lambda x: x, "text")
    with pytest.raises(errors.UnsupportedResultError):
        eval_shape(lambda x: "text", F3)
    with pytest.raises(TypeError, match="takes a function"):
        eval_shape(F3)  # type: ignore[arg-type]


# ---- donated arguments by name ----


def test_donated_names_are_those_of_positions() -> None:
    def step(state: Any, rate: float, *, more: Any = 0.0) -> Any:
        return state - rate * more

    by_name = jit(step, donate_argnames="state")
    by_number = jit(step, donate_argnums=0)
    assert by_name._signature.donated == by_number._signature.donated == {0, "state"}
    both = jit(step, donate_argnames=("more", "state"), donate_argnums=1)
    assert both._signature.donated == {0, 1, "state", "rate", "more"}
    x, y = asarray([1.0, 2.0]), asarray([3.0, 4.0])
    np.testing.assert_array_equal(jit(step, donate_argnames=["more"])(x, 2.0, more=y), [-5, -6])
    with pytest.raises(errors.DonatedArrayError):
        np.asarray(y)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_donated_names_are_parameters() -> None:
    with pytest.raises(ValueError, match="donate_argnames has 'y', but the parameters of"):
        jit(lambda x: x, donate_argnames="y")
    with pytest.raises(ValueError, match=r"argument .* cannot be both static and donated"):
        jit(lambda x: x, donate_argnames="x", static_argnums=0)
    with pytest.raises(TypeError, match="expected str or several"):
        jit(lambda x: x, donate_argnames=[0])  # type: ignore[list-item]
