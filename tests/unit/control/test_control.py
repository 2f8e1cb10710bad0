"""Control flow: what is traced and interpreted equals the plain Python run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.helpers.traced import assert_traced_equals_eager, trace
from tracegraph import Array, control, debug, errors, register_dataclass, tree
from tracegraph.ir import interpret
from tracegraph.ir.program import walk
from tracegraph.passes import optimize

X = np.array([1.0, -2.0, 3.0])


@register_dataclass
@dataclass(frozen=True)
class Body:
    position: Any
    velocity: Any
    name: str = field(default="sun", metadata={"static": True})


class Pair(NamedTuple):
    left: Any
    right: Any


class Bag:
    """A node that only the registration makes one."""

    def __init__(self, *items: Any) -> None:
        self.items = items


tree.register(Bag, lambda bag: (bag.items, None), lambda _, items: Bag(*items))


@pytest.mark.parametrize("pred", [True, False, 1, 0.0, -0.0, float("nan"), 2j, np.int8(3), X[1]])
def test_cond_takes_any_scalar_number_as_predicate(pred: Any) -> None:
    assert_traced_equals_eager(
        lambda p, x: control.cond(p, lambda v: v + 1, lambda v: v * 2, x), pred, X
    )


def test_cond_with_a_python_bool_inside_a_trace_is_traced_and_then_inlined() -> None:
    def f(x: Any) -> Any:
        return control.cond(True, lambda v: v + 1, lambda v: v * 2, x)

    assert [eqn.op.name for eqn in walk(trace(f, X).body)] == ["cond", "add", "multiply"]
    np.testing.assert_array_equal(assert_traced_equals_eager(f, X), X + 1)


def test_eager_cond_runs_only_the_branch_taken() -> None:
    log = []
    control.cond(False, lambda: log.append("true"), lambda: log.append("false"))
    assert log == ["false"]


def test_branches_may_return_captured_values_and_constants() -> None:
    table = np.arange(3.0)

    def f(p: Any, x: Any) -> Any:
        y = x * 2
        return control.cond(p, lambda: (y, table, 1.0), lambda: (table, x, x[0]))

    for pred in (True, False):
        assert_traced_equals_eager(f, pred, X)


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (1, 2.5, "~f64[]"),
        (1, 2, "~i64[]"),
        (1, np.float32(2), "f32[]"),
        (np.int8(1), 2, "i8[]"),
        (1.5, 2j, "~c128[]"),
    ],
)
def test_weak_results_of_branches_join(first: Any, second: Any, joined: str) -> None:
    def f(p: Any) -> Any:
        return control.cond(p, lambda: first, lambda: second)

    program = trace(f, np.bool_(True))
    assert str(program.out_types[0]) == joined
    for p in (np.bool_(True), np.bool_(False)):
        for variant in (program, optimize(program)):
            (result,) = interpret.run(variant, p)
            assert result == f(p)
            assert result.dtype == program.out_types[0].dtype


@pytest.mark.parametrize("index", [-5, -1, 0, 1, 2, 9, np.uint64(2**64 - 1), np.int8(-1)])
def test_switch_clamps_its_index(index: Any) -> None:
    branches = [lambda v: v, lambda v: v + 1, lambda v: -v]
    assert_traced_equals_eager(lambda i, x: control.switch(i, branches, x), index, X)


def test_switch_of_one_branch_is_a_call() -> None:
    program = trace(lambda i, x: control.switch(i, [lambda v: v + 1], x), 0, X)
    assert [eqn.op.name for eqn in program.body.eqns] == ["add"]


@pytest.mark.parametrize("limit", [-1.0, 5.0, 100.0])
def test_while_loop_tests_first(limit: float) -> None:
    def f(x: Any, limit: Any) -> Any:
        def step(state: Any) -> Any:
            return {"x": state["x"] * 2, "n": state["n"] + 1}

        return control.while_loop(
            lambda s: np.sum(np.abs(s["x"])) < limit, step, {"x": x, "n": np.int32(0)}
        )

    assert_traced_equals_eager(f, X, limit)


def test_while_loop_with_an_empty_carry() -> None:
    assert (
        assert_traced_equals_eager(
            lambda x: (x, control.while_loop(lambda _: np.bool_(False), lambda c: c, ())), X
        )[1]
        == ()
    )


def test_weak_carry_takes_the_type_of_the_body() -> None:
    loop = lambda: control.while_loop(lambda c: c < 3, lambda c: c + 1.5, 0)  # noqa: E731
    assert loop() == 3.0
    assert_traced_equals_eager(lambda x: (x, loop()), X)
    program = trace(loop)
    assert str(program.out_types[0]) == "~f64[]"

    def to_array_type(x: Any) -> Any:
        return control.fori_loop(0, 3, lambda i, c: (c[0] + c[1], x[i]), (0, 0))

    assert_traced_equals_eager(to_array_type, X.astype(np.float32))


def test_strong_carry_keeps_its_type_when_the_body_returns_a_python_scalar() -> None:
    assert_traced_equals_eager(lambda x: control.fori_loop(0, 2, lambda i, c: 1, x), np.float32(5))


def test_permuted_carries() -> None:
    assert_traced_equals_eager(
        lambda x, n: control.fori_loop(0, n, lambda i, c: (c[2], c[0], c[1]), (x, x + 1, x * 2)),
        X,
        4,
    )


def test_the_initial_carry_is_never_written_to() -> None:
    def body(_: Any, c: Any) -> Any:
        c += 1
        return c

    x = X.copy()
    np.testing.assert_array_equal(control.fori_loop(0, 2, body, x), X + 2)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (3, 3), (5, 2), (-2, 2)])
def test_fori_loop_has_a_static_trip_count_if_both_bounds_are_known(lower: int, upper: int) -> None:
    def f(x: Any) -> Any:
        return control.fori_loop(lower, upper, lambda i, c: c * 2 + i, x)

    assert_traced_equals_eager(f, X)
    (loop,) = (eqn for eqn in trace(f, X).body.eqns if eqn.op.name == "while_loop")
    assert loop.attrs["trip_count"] == max(upper - lower, 0)


@pytest.mark.parametrize(
    "bounds", [(0, 4), (np.int32(1), np.int32(4)), (0, np.uint8(255)), (np.int64(2), 1)]
)
def test_fori_loop_with_traced_bounds(bounds: tuple[Any, Any]) -> None:
    def f(lower: Any, upper: Any, x: Any) -> Any:
        return control.fori_loop(lower, upper, lambda i, c: c + i, x)

    assert_traced_equals_eager(f, *bounds, X)
    assert "trip_count" not in str(trace(f, *bounds, X))


def test_the_counter_of_python_bounds_bends_to_arrays() -> None:
    eager = assert_traced_equals_eager(
        lambda x: control.fori_loop(0, 3, lambda i, c: c * i, x), X.astype(np.float32)
    )
    assert eager.dtype == np.float32


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [0, 1, 2, 3, 7, 100, False, True])
@pytest.mark.parametrize("length", [0, 1, 7])
def test_scan(length: int, unroll: int, reverse: bool) -> None:
    xs = {"a": np.arange(2.0 * length).reshape(length, 2), "b": np.arange(length)}

    def f(c: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            c = c * 0.5 + x["a"]
            return c, {"sum": np.sum(c), "double": 2 * x["b"], "one": 1}

        return control.scan(body, c, xs, reverse=reverse, unroll=unroll)

    assert_traced_equals_eager(f, np.ones(2), xs)


def test_scan_over_nothing_but_a_length() -> None:
    assert_traced_equals_eager(
        lambda x: control.scan(lambda c, _: (c * 2, (c, None)), x, length=3), X
    )


def test_scan_with_weak_carry_and_stacked_results() -> None:
    for length in (0, 2):
        assert_traced_equals_eager(
            lambda x: control.scan(lambda c, v: (c + v, c), 0, x), np.ones(length, np.float32)
        )


@pytest.mark.parametrize("length", [0, 3])
def test_map(length: int) -> None:
    xs = (np.arange(length), np.ones((length, 2), np.float32))
    assert_traced_equals_eager(lambda xs: control.map(lambda x: (x[0] + 1, np.sum(x[1])), xs), xs)


def test_nested_constructs_capture_from_any_depth() -> None:
    table = np.arange(6.0).reshape(2, 3)

    def f(x: Any, n: Any) -> Any:
        twice = x * 2

        def outer(i: Any, c: Any) -> Any:
            shifted = c + i

            def inner(carry: Any, row: Any) -> Any:
                taken = control.cond(
                    np.sum(carry) > 10,
                    lambda: control.while_loop(
                        lambda v: np.sum(v) > 5, lambda v: v / 2 - table[0], carry + twice
                    ),
                    lambda: control.switch(
                        i, [lambda v: v + row, lambda v: v - shifted, lambda v: v * x], carry
                    ),
                )
                return taken, np.max(taken) + n

            return control.scan(inner, c, table)[0]

        return control.fori_loop(0, n, outer, x)

    for n in range(5):
        assert_traced_equals_eager(f, X, n)


def test_values_used_by_one_region_become_operands_of_all() -> None:
    program = trace(
        lambda p, x, y: control.cond(p, lambda: x + 1, lambda: y * 2), np.bool_(True), X, X
    )
    (eqn,) = program.body.eqns
    assert eqn.operands == program.body.params
    assert [len(region.params) for region in eqn.regions] == [2, 2]


def test_an_exception_in_a_branch_leaves_no_trace_behind() -> None:
    def broken() -> Any:
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        trace(lambda p: control.cond(p, broken, lambda: 1), np.bool_(True))
    assert control.cond(True, lambda: 1, broken) == 1


def test_a_value_that_left_its_branch_is_an_error() -> None:
    escaped = []

    def leak(x: Any) -> Any:
        escaped.append(x + 1)
        return x

    def f(p: Any, x: Any) -> Any:
        y = control.cond(p, leak, leak, x)
        return y + escaped[0]

    with pytest.raises(errors.EscapedTracerError, match="outside the function"):
        trace(f, np.bool_(True), X)


def test_arrays_of_the_package_run_eagerly_and_stay_such() -> None:
    x = Array(X.copy())
    results = [
        control.cond(x[0] > 0, lambda v: v + 1, lambda v: v, x),
        control.switch(Array(np.array(9)), [lambda v: v, lambda v: v + 1], x),
        control.while_loop(lambda c: c[0] < 2, lambda c: c + 1, x),
        control.fori_loop(0, Array(np.array(1)), lambda i, c: c + i + 1, x),
        control.scan(lambda c, v: (c, v + 1), 0, x)[1],
        control.map(lambda v: v + 1, x),
    ]
    for result in results:
        assert isinstance(result, Array)
        np.testing.assert_array_equal(np.asarray(result), X + 1)


def moved(body: Body) -> Body:
    return Body(body.position + body.velocity, -body.velocity, body.name)


def test_dataclasses_tuples_with_names_and_own_nodes_are_carried() -> None:
    def f(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            body, pair, bag, nothing = state
            first, second = bag.items
            return moved(body), Pair(pair.right, pair.left + i), Bag(second, first * 2), nothing

        start = (Body(x, x / 2), Pair(0, 1), Bag(x[0], np.float64(1)), None)
        body, pair, bag, nothing = control.fori_loop(0, 3, step, start)
        assert body.name == "sun"
        return body, pair, bag.items, nothing

    assert_traced_equals_eager(f, X)


def test_branches_and_scans_take_and_return_dataclasses_and_none() -> None:
    def f(p: Any, x: Any) -> Any:
        def stay(body: Body, extra: Any) -> Any:
            return body, {"none": None, "extra": extra}

        def move(body: Body, extra: Any) -> Any:
            return moved(body), {"none": None, "extra": extra + 1}

        chosen, rest = control.cond(p, move, stay, Body(x, x), 1)
        number = np.float64(2) * p
        chosen = control.switch(np.int64(number), [lambda b: b, moved, moved], chosen)
        last, ys = control.scan(
            lambda b, row: (moved(b), Body(row, None)), chosen, Body(x, None).position
        )
        return last, ys, rest, control.map(lambda row: {"row": row, "none": None}, x)

    def g(x: Any) -> Any:
        return f(np.bool_(True), x)

    assert_traced_equals_eager(g, X)


def test_duplicated_and_exchanged_carries() -> None:
    def f(x: Any, n: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            a, b, d = c
            return b, a + i, d

        return control.fori_loop(0, n, step, (x, x, x)), control.fori_loop(
            0, n, lambda i, c: (c[1], c[1], c[0] * 2), (x, x + 1, x)
        )

    for n in (0, 1, 2, 5):
        assert_traced_equals_eager(f, X, n)


def test_no_carry_at_all() -> None:
    def f(x: Any) -> Any:
        return (
            control.fori_loop(0, 3, lambda i, c: c, ()),
            control.scan(lambda c, v: (c, v * 2), (), x),
            control.scan(lambda c, v: (c, None), {}, x),
            control.fori_loop(0, 3, lambda i, c: c, {"none": None}),
        )

    assert assert_traced_equals_eager(f, X)[0] == ()


def test_the_condition_and_the_body_capture_different_values_of_all_levels() -> None:
    limits = np.array([2.0, 50.0])

    def f(x: Any, n: Any) -> Any:
        scale = x * 2

        def outer(i: Any, total: Any) -> Any:
            shifted = scale + i

            def inner(c: Any) -> Any:
                return c + np.abs(shifted) + control.cond(i > 0, lambda: x, lambda: scale)

            return control.while_loop(lambda c: np.sum(c) < limits[1] + i - limits[0], inner, total)

        return control.fori_loop(0, n, outer, np.zeros_like(x))

    for n in (0, 1, 3):
        assert_traced_equals_eager(f, X, n)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("limit", [0.3, 0.7, 1.1])
def test_decisions_at_the_edge_of_rounding_are_those_of_numpy(dtype: type, limit: float) -> None:
    def f(x: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] + x, c[1] + 1

        return control.while_loop(lambda c: c[0] < limit, step, (x * 0, 0))

    for start in (0.1, limit / 3, limit / 7):
        assert_traced_equals_eager(f, dtype(start))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (np.int8(120), np.int8(127)),
        (np.uint8(250), 255),
        (np.uint8(5), np.uint8(2)),
        (-3, np.int16(0)),
        (np.uint64(2**64 - 3), np.uint64(2**64 - 1)),
        (np.int64(-(2**63)), np.int64(-(2**63) + 2)),
    ],
)
def test_bounds_at_the_ends_of_their_types(lower: Any, upper: Any) -> None:
    def f(lower: Any, upper: Any) -> Any:
        return control.fori_loop(lower, upper, lambda i, c: (c[0] + 1, i), (0, lower))

    assert_traced_equals_eager(f, lower, upper)
    assert_traced_equals_eager(lambda x: (x, f(lower, upper)), X)


def test_a_bound_that_does_not_fit_the_type_of_the_other_is_an_error() -> None:
    def f(lower: Any) -> Any:
        return control.fori_loop(lower, 300, lambda i, c: c, X)

    for run in (lambda: f(np.int8(0)), lambda: trace(f, np.int8(0))):
        with pytest.raises(errors.BoundRangeError, match=r"upper is 300, .* i8\[\].*\.astype"):
            run()
    with pytest.raises(errors.BoundRangeError, match=r"lower is -1, .* u64"):
        control.fori_loop(-1, np.uint64(3), lambda i, c: c, X)
    with pytest.raises(errors.BoundRangeError, match=r"lower is -1, .*~u64"):
        control.fori_loop(-1, 2**63, lambda i, c: c, X)
    assert control.fori_loop(2**63, 2**63 + 2, lambda i, c: c + 1, 0) == 2


def test_arrays_stay_such_where_a_scan_has_no_slices() -> None:
    x = Array(np.zeros((0, 2)))
    last, ys = control.scan(lambda c, v: (c + v, 2 * v), Array(X[:2].copy()), x)
    for result, shape in ((last, (2,)), (ys, (0, 2)), (control.map(lambda v: v, x), (0, 2))):
        assert isinstance(result, Array)
        assert result.shape == shape


def test_nothing_to_scan_still_finds_the_types_of_the_results() -> None:
    def f(x: Any) -> Any:
        return control.scan(lambda c, v: (c + v, {"a": v > 0, "b": [1, v * 1j]}), 0, x)

    _, ys = assert_traced_equals_eager(f, np.zeros((0,), np.float32))
    assert [y.dtype for y in tree.leaves(ys)] == [np.bool_, np.int64, np.complex64]


def test_the_body_cannot_write_to_the_slices() -> None:
    xs = np.ones((2, 3))

    def body(c: Any, row: Any) -> Any:
        row += 1
        return c, row

    for run in (control.scan, lambda *a: trace(lambda xs: control.scan(a[0], a[1], xs), xs)):
        with pytest.raises(ValueError, match=r"assignment|read-only"):
            run(body, 0, xs)
    np.testing.assert_array_equal(xs, 1)


@pytest.mark.parametrize("construct", ["scan", "map"])
def test_results_of_eager_iterations_must_be_alike(construct: str) -> None:
    def ragged(c: Any, v: Any) -> Any:
        return c, {"a": X[: int(v)]}

    def other(c: Any, v: Any) -> Any:
        return c, ((v,) if v > 1 else [v])

    for body, error, facts in (
        (ragged, errors.LeafMismatchError, ["['a']: iteration 0 f64[1], iteration 1 f64[2]"]),
        (other, errors.StructureError, ["iteration 0: [*]", "iteration 1: (*,)"]),
    ):
        calls = {
            "scan": lambda body=body: control.scan(body, 0, np.array([1, 2])),
            "map": lambda body=body: control.map(lambda v: body(0, v)[1], np.array([1, 2])),
        }
        with pytest.raises(error) as found:
            calls[construct]()
        for fact in (*facts, f"{construct}:", "(test_control.py:"):
            assert fact in str(found.value)


def test_after_an_exception_in_a_condition_all_is_as_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(c: Any) -> Any:
        raise KeyError("broken")

    for run in (
        lambda: control.while_loop(broken, lambda c: c, X),
        lambda: trace(lambda x: control.while_loop(broken, lambda c: c, x), X),
    ):
        with pytest.raises(KeyError):
            run()
    debug.print("allowed again")
    assert capsys.readouterr().out == "allowed again\n"


def test_a_static_unroll_may_be_a_numpy_integer_and_so_may_a_length() -> None:
    def f(x: Any) -> Any:
        return control.scan(lambda c, v: (c + v, c), 0.0, x, length=np.int64(3), unroll=np.int32(2))

    assert_traced_equals_eager(f, X)
