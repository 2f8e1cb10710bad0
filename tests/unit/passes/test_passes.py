"""Each pass: what it does, in golden text, and that it changes no bit of any result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs.by_hand import apply, literal, out, program, region, value
from tracegraph.dtypes import bfloat16
from tracegraph.ir import interpret
from tracegraph.ir.op import get
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Value, walk
from tracegraph.ir.types import ArrayType
from tracegraph.ir.verify import verify
from tracegraph.passes import (
    compose_views,
    cse,
    dce,
    fold,
    inline,
    optimize,
    simplify,
    tidy_captures,
)

Pass = Callable[[Program], Program]


def body_text(p: Program) -> list[str]:
    """The lines between the first and the last of the verified program's text."""
    return [line[2:] for line in str(verify(p)).splitlines()[1:-1]]


def test_dce_drops_equations_and_constants_that_no_result_needs() -> None:
    x, used, unused = value("f64[2]"), value("f64[2]"), value("f64[3]")
    kept, dropped = apply("add", x, used), apply("sin", unused)
    p = program([x, used, unused], [kept, dropped], out(kept), constants=[np.ones(2), np.ones(3)])
    assert body_text(dce(p)) == ["const c0: f64[2]", "b: f64[2] = add a c0", "return b"]


def test_dce_drops_results_and_captures_of_branches() -> None:
    p, x, y = value("bool[]"), value("f64[]"), value("f64[]")
    a, b, c, d = (value("f64[]") for _ in range(4))
    sin, cos = apply("sin", a), apply("cos", b)
    branches = [region([a, b], [sin, cos], out(sin), out(cos)), region([c, d], [], c, d)]
    chosen = apply("cond", p, x, y, regions=branches)
    assert body_text(dce(program([p, x, y], [chosen], chosen.outputs[1]))) == [
        "d: f64[] = cond a c",
        "  true(e: f64[]) {",
        "    f: f64[] = cos e",
        "    return f",
        "  }",
        "  false(g: f64[]) {",
        "    return g",
        "  }",
        "return d",
    ]


def while_loop_with_idle_carries() -> Program:
    """Carries: the result; one that feeds it; one that feeds itself only; the counter."""
    x, n = value("f64[]"), value("i64[]")
    a, b, c, i, m = (value(t) for t in ("f64[]",) * 3 + ("i64[]",) * 2)
    d, e, f, j, k = (value(t) for t in ("f64[]",) * 3 + ("i64[]",) * 2)
    test = apply("less", i, m)
    eqns = [apply("add", d, e), apply("sin", e), apply("cos", f), apply("add", j, literal(1))]
    loop = apply(
        "while_loop",
        *(x, x, x, literal(0), n),
        regions=[
            region([a, b, c, i, m], [test], out(test)),
            region([d, e, f, j, k], eqns, *map(out, eqns)),
        ],
        carry=4,
    )
    return program([x, n], [loop], loop.outputs[0])


def test_dce_drops_carries_that_serve_only_themselves() -> None:
    assert body_text(dce(while_loop_with_idle_carries())) == [
        "c: f64[], d: f64[], e: i64[] = while_loop[carry=3] a a 0 b",
        "  cond(f: f64[], g: f64[], h: i64[], i: i64[]) {",
        "    j: bool[] = less h i",
        "    return j",
        "  }",
        "  body(k: f64[], l: f64[], m: i64[], n: i64[]) {",
        "    o: f64[] = add k l",
        "    p: f64[] = sin l",
        "    q: i64[] = add m 1",
        "    return o, p, q",
        "  }",
        "return c",
    ]


def test_dce_drops_xs_and_stacked_results_of_a_scan() -> None:
    init, xs, ys, captured = value("f64[]"), value("f64[4]"), value("f64[4]"), value("f64[]")
    c, x, y, t = (value("f64[]") for _ in range(4))
    total, double, other = apply("add", c, x), apply("add", x, x), apply("multiply", y, t)
    scan = apply(
        "scan",
        *(init, xs, ys, captured),
        regions=[region([c, x, y, t], [total, double, other], *map(out, (total, double, other)))],
        carry=1,
        xs=2,
        length=4,
        reverse=False,
    )
    p = program([init, xs, ys, captured], [scan], scan.outputs[1])
    assert body_text(dce(p)) == [
        "e: f64[4] = scan[carry=0, xs=1, length=4, reverse=False] b",
        "  body(f: f64[]) {",
        "    g: f64[] = add f f",
        "    return g",
        "  }",
        "return e",
    ]


def test_cse_keeps_the_first_of_equal_equations() -> None:
    x = value("f64[]")
    a, b = apply("sin", x), apply("sin", x)
    total = apply("add", out(a), out(b))
    again = apply("add", out(b), out(a))
    p = program([x], [a, b, total, again], out(total), out(again))
    assert body_text(cse(p)) == ["b: f64[] = sin a", "c: f64[] = add b b", "return c, c"]


@pytest.mark.parametrize(
    ("first", "second"),
    [(0.0, -0.0), (1.0, np.float32(1)), (1, True)],
)
def test_cse_tells_literals_apart_by_dtype_and_bits(first: Any, second: Any) -> None:
    a, b = (apply("where", literal(True), literal(v), literal(v)) for v in (first, second))
    p = program([], [a, b], out(a), out(b))
    assert len(verify(cse(p)).body.eqns) == 2


def test_cse_tells_attributes_apart_and_merges_nans() -> None:
    x = value("f64[2,2]")
    a, b = apply("transpose", x, axes=(0, 1)), apply("transpose", x, axes=(1, 0))
    c, d = (apply("add", x, literal(float("nan"))) for _ in range(2))
    p = program([x], [a, b, c, d], *map(out, (a, b, c, d)))
    assert [e.op.name for e in verify(cse(p)).body.eqns] == ["transpose", "transpose", "add"]


def test_fold_computes_scalars_but_makes_no_arrays() -> None:
    two = apply("add", literal(1.0), literal(1.0))
    four = apply("multiply", out(two), out(two))
    array = apply("broadcast_to", out(four), shape=(3,))
    p = program([], [two, four, array], out(array))
    assert body_text(fold(p)) == ["a: f64[3] = broadcast_to[shape=(3,)] 4.0", "return a"]


def test_fold_works_inside_regions_and_without_warnings() -> None:
    p, x, a, b = value("bool[]"), value("f64[]"), value("f64[]"), value("f64[]")
    inf = apply("divide", literal(1.0), literal(0.0))
    chosen = apply("cond", p, x, regions=[region([a], [inf], out(inf)), region([b], [], b)])
    folded = fold(program([p, x], [chosen], out(chosen)))
    assert "    return inf" in body_text(folded)


def clean_up(p: Program) -> Program:
    return compose_views(simplify(p))


# Each case: the type of x, the equations on it, and the text that is left.
SAME: dict[str, tuple[str, Callable[[Value], Sequence[Eqn]]]] = {
    "x * 1": ("f64[2]", lambda x: [apply("multiply", x, literal(1.0))]),
    "1 * x": ("i64[2]", lambda x: [apply("multiply", literal(1), x)]),
    "x / 1": ("f64[2]", lambda x: [apply("divide", x, literal(1.0))]),
    "x - 0": ("f64[2]", lambda x: [apply("subtract", x, literal(0.0))]),
    "x - 0 in complex": ("c128[2]", lambda x: [apply("subtract", x, literal(0j))]),
    "x + -0": ("f64[2]", lambda x: [apply("add", x, literal(-0.0))]),
    "x + 0 in integers": ("i64[2]", lambda x: [apply("add", x, literal(0))]),
    "cast": ("f64[2]", lambda x: [apply("cast", x, dtype=np.dtype(float))]),
    "reshape": ("f64[2]", lambda x: [apply("reshape", x, shape=(2,))]),
    "broadcast": ("f64[2]", lambda x: [apply("broadcast_to", x, shape=(2,))]),
    "transpose": ("f64[2,3]", lambda x: [apply("transpose", x, axes=(0, 1))]),
    "slice": ("f64[2]", lambda x: [apply("slice", x, starts=(0,), steps=(1,), sizes=(2,))]),
    "negative": ("f64[2]", lambda x: [n := apply("negative", x), apply("negative", out(n))]),
    "invert": ("i64[2]", lambda x: [n := apply("invert", x), apply("invert", out(n))]),
    "swap": (
        "f64[2,3]",
        lambda x: [
            t := apply("transpose", x, axes=(1, 0)),
            apply("transpose", out(t), axes=(1, 0)),
        ],
    ),
    "where true": ("f64[2]", lambda x: [apply("where", literal(True), x, literal(1.0))]),
    "where same": ("f64[]", lambda x: [apply("where", literal(True), x, x)]),
}


@pytest.mark.parametrize("case", SAME)
def test_what_changes_no_bit_is_dropped(case: str) -> None:
    type_, make = SAME[case]
    x = value(type_)
    eqns = make(x)
    assert body_text(dce(clean_up(program([x], eqns, out(eqns[-1]))))) == ["return a"]


KEPT: dict[str, tuple[str, Callable[[Value], Eqn]]] = {
    "x + 0 turns -0.0 into 0.0": ("f64[2]", lambda x: apply("add", x, literal(0.0))),
    "x - -0 too": ("f64[2]", lambda x: apply("subtract", x, literal(-0.0))),
    "and in bfloat16": (
        "bf16[2]",
        lambda x: apply("add", x, Literal(bfloat16.type(0), ArrayType(bfloat16))),
    ),
    "complex products make NaNs": ("c128[2]", lambda x: apply("multiply", x, literal(1 + 0j))),
    "0 - x": ("f64[2]", lambda x: apply("subtract", literal(0.0), x)),
    "1 / x": ("f64[2]", lambda x: apply("divide", literal(1.0), x)),
    "broadcasting": ("f64[]", lambda x: apply("broadcast_to", x, shape=(2,))),
    "a reversal": ("f64[2]", lambda x: apply("slice", x, starts=(1,), steps=(-1,), sizes=(2,))),
    "a chosen scalar": ("f64[2]", lambda x: apply("where", literal(False), x, literal(1.0))),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_not_exact_is_kept(case: str) -> None:
    type_, make = KEPT[case]
    x = value(type_)
    eqn = make(x)
    p = program([x], [eqn], out(eqn))
    assert body_text(clean_up(p)) == body_text(p)


def test_compose_views_makes_one_of_a_chain() -> None:
    x = value("f64[8,6]")
    a = apply("slice", x, starts=(6, 1), steps=(-2, 1), sizes=(4, 5))
    b = apply("slice", out(a), starts=(1, 4), steps=(1, -2), sizes=(3, 3))
    c = apply("transpose", out(b), axes=(1, 0))
    d = apply("reshape", out(c), shape=(9,))
    e = apply("reshape", out(d), shape=(3, 1, 3))
    p = program([x], [a, b, c, d, e], out(e))
    assert body_text(dce(compose_views(p))) == [
        "b: f64[3,3] = slice[starts=(4, 5), steps=(-2, -2), sizes=(3, 3)] a",
        "c: f64[3,3] = transpose[axes=(1, 0)] b",
        "d: f64[3,1,3] = reshape[shape=(3, 1, 3)] c",
        "return d",
    ]
    assert_same_results(p, compose_views(p))


@pytest.mark.parametrize(("name", "selector"), [("cond", False), ("switch", 5), ("switch", 1)])
def test_inline_takes_the_branch_that_a_literal_selects(name: str, selector: Any) -> None:
    x, v, w = value("f64[]"), value("f64[]"), value("f64[]")
    sin, cos = apply("sin", v), apply("cos", w)
    branches = [region([v], [sin], out(sin)), region([w], [cos], out(cos))]
    chosen = [apply(name, literal(selector), x, regions=branches) for _ in range(2)]
    p = program([x], chosen, *map(out, chosen))  # both hold the same regions
    assert body_text(inline(p)) == ["b: f64[] = cos a", "c: f64[] = cos a", "return b, c"]


def test_inline_drops_a_loop_that_is_never_entered() -> None:
    x, v, w = value("f64[]"), value("f64[]"), value("f64[]")
    test = apply("isfinite", v)
    regions = [region([v], [test], out(test)), region([w], [], w)]
    loop = apply("while_loop", x, regions=regions, carry=1, trip_count=0)
    assert body_text(inline(program([x], [loop], out(loop)))) == ["return a"]


def test_tidy_captures_takes_constant_carries_and_literals_out_of_a_loop() -> None:
    x, table = value("f64[]"), value("f64[3]")
    a, b, c, d = (value(t) for t in ("f64[]", "f64[3]", "f64[]", "f64[3]"))
    e, f, g, h = (value(t) for t in ("f64[]", "f64[3]", "f64[]", "f64[3]"))
    test, largest = apply("less", a, c), apply("max", f, axes=(0,))
    smallest = apply("min", h, axes=(0,))
    step, last = apply("add", e, out(largest)), apply("add", out(smallest), g)
    total = apply("add", out(step), out(last))
    loop = apply(
        "while_loop",
        *(x, table, literal(9.0), table),
        regions=[
            region([a, b, c, d], [test], out(test)),
            region([e, f, g, h], [largest, smallest, step, last, total], out(total), f),
        ],
        carry=2,
    )
    p = program([x, table], [loop], *loop.outputs)
    assert body_text(tidy_captures(p)) == [
        "c: f64[] = while_loop[carry=1] a b",
        "  cond(d: f64[], e: f64[3]) {",
        "    f: bool[] = less d 9.0",
        "    return f",
        "  }",
        "  body(g: f64[], h: f64[3]) {",
        "    i: f64[] = max[axes=(0,)] h",
        "    j: f64[] = min[axes=(0,)] h",
        "    k: f64[] = add g i",
        "    l: f64[] = add j 9.0",
        "    m: f64[] = add k l",
        "    return m",
        "  }",
        "return c, b",
    ]


def test_tidy_captures_of_branches() -> None:
    p, x = value("bool[]"), value("f64[]")
    a, b, c, d, e, f = (value("f64[]") for _ in range(6))
    add, mul = apply("add", a, b), apply("multiply", e, f)
    branches = [region([a, b, c], [add], out(add)), region([d, e, f], [mul], out(mul))]
    chosen = apply("cond", p, x, literal(2.0), x, regions=branches)
    assert body_text(tidy_captures(program([p, x], [chosen], out(chosen)))) == [
        "c: f64[] = cond a b",
        "  true(d: f64[]) {",
        "    e: f64[] = add d 2.0",
        "    return e",
        "  }",
        "  false(f: f64[]) {",
        "    g: f64[] = multiply 2.0 f",
        "    return g",
        "  }",
        "return c",
    ]


SPECIAL = (0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"))


def assert_same_results(before: Program, after: Program) -> None:
    """Require results of the same bits, for inputs full of special values."""
    verify(after)
    rng = np.random.default_rng(0)
    inputs = [rng.choice(SPECIAL, t.shape).astype(t.dtype) for t in before.in_types]
    for old, new in zip(interpret.run(before, *inputs), interpret.run(after, *inputs), strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        nans = np.isnan(old)  # the bits of a NaN that an operation makes are not specified
        np.testing.assert_array_equal(nans, np.isnan(new))
        assert old[~nans].tobytes() == new[~nans].tobytes()


UNARY = ("negative", "sin", "isfinite", "transpose", "reverse", "flatten", "cast")
BINARY = ("add", "subtract", "multiply", "divide", "maximum")
SHAPE = (2, 2)


@st.composite
def regions_(draw: st.DrawFn, params: Sequence[Value], results: int, depth: int) -> Any:
    """A region of f64[2,2] values over `params`."""
    eqns: list[Eqn] = []
    pool: list[Atom] = [p for p in params if p.type.shape == SHAPE]

    def emit(name: str, *operands: Atom, **attrs: Any) -> Value:
        eqns.append(apply(name, *operands, **attrs))
        return eqns[-1].outputs[0]

    def scalar() -> Atom:
        atom = literal(draw(st.sampled_from(SPECIAL)))
        return emit("exp", atom) if draw(st.booleans()) else atom

    def pick() -> Atom:
        return draw(st.sampled_from(pool)) if pool else emit("broadcast_to", scalar(), shape=SHAPE)

    def flag() -> Atom:
        if draw(st.booleans()):
            return literal(draw(st.booleans()))
        return emit("any", emit("less", pick(), pick()), axes=(0, 1))

    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from((*UNARY, *BINARY, "where", *CONTROL * (depth > 0))))
        if kind in BINARY:
            x = pick()
            y = scalar() if draw(st.booleans()) else pick()
            pool.append(emit(kind, *((x, y) if draw(st.booleans()) else (y, x))))
        elif kind == "where":
            pool.append(emit("where", flag(), pick(), pick()))
        elif kind in CONTROL:
            pool.extend(CONTROL_OPS[kind](draw, eqns, pick, flag, depth - 1))
        else:
            pool.append(_unary(emit, kind, pick()))
    return region(params, eqns, *(pick() for _ in range(results)))


def _unary(emit: Callable[..., Value], kind: str, x: Atom) -> Value:
    if kind == "isfinite":
        return emit("cast", emit("isfinite", x), dtype=np.dtype(float))
    if kind == "reverse":
        return emit("slice", x, starts=(1, 0), steps=(-1, 1), sizes=SHAPE)
    if kind == "flatten":
        return emit("reshape", emit("reshape", x, shape=(4,)), shape=SHAPE)
    attrs = {"transpose": {"axes": (1, 0)}, "cast": {"dtype": np.dtype(float)}}.get(kind, {})
    return emit(kind, x, **attrs)


def _params(count: int, *others: str) -> list[Value]:
    return [*(value("f64[2,2]") for _ in range(count)), *map(value, others)]


def _captures(draw: st.DrawFn, pick: Callable[[], Atom]) -> list[Atom]:
    captures = [pick() for _ in range(draw(st.integers(0, 3)))]
    return [c for c in captures if not isinstance(c, Literal)]


def _cond(draw: Any, eqns: list[Eqn], pick: Any, flag: Any, depth: int) -> Sequence[Value]:
    pred, captures, results = flag(), _captures(draw, pick), draw(st.integers(1, 3))
    branches = [draw(regions_(_params(len(captures)), results, depth)) for _ in range(2)]
    eqns.append(apply("cond", pred, *captures, regions=branches))
    return eqns[-1].outputs


def _while(draw: Any, eqns: list[Eqn], pick: Any, flag: Any, depth: int) -> Sequence[Value]:
    """At most three iterations, counted by the last carry."""
    init = [pick() for _ in range(draw(st.integers(1, 3)))]
    captures = _captures(draw, pick)
    count, total = len(init), len(init) + len(captures)
    (*carries, n), inner = _params(count, "i64[]"), _params(len(captures))
    test = apply("less", n, literal(draw(st.integers(0, 3))))
    condition = region([*carries, n, *inner], [test], out(test))
    body = draw(regions_(_params(total), count, depth))
    step = apply("add", counter := value("i64[]"), literal(1))
    params = (*body.params[:count], counter, *body.params[count:])
    body = region(params, [*body.eqns, step], *body.results, out(step))
    operands = (*init, literal(0), *captures)
    eqns.append(apply("while_loop", *operands, regions=[condition, body], carry=count + 1))
    return eqns[-1].outputs[:-1]


def _scan(draw: Any, eqns: list[Eqn], pick: Any, flag: Any, depth: int) -> Sequence[Value]:
    init = [pick() for _ in range(draw(st.integers(0, 2)))]
    captures = _captures(draw, pick)
    eqns.append(apply("broadcast_to", pick(), shape=(3, *SHAPE)))
    carry = len(init)
    body = draw(regions_(_params(carry + 1 + len(captures)), carry + 1, depth))
    attrs = {"carry": carry, "xs": 1, "length": 3, "reverse": draw(st.booleans())}
    operands = (*init, out(eqns[-1]), *captures)
    eqns.append(apply("scan", *operands, regions=[body], **attrs))
    *carries, stacked = eqns[-1].outputs
    eqns.append(apply("sum", stacked, axes=(0,)))
    return [*carries, out(eqns[-1])]


CONTROL_OPS = {"cond": _cond, "while_loop": _while, "scan": _scan}
CONTROL = tuple(CONTROL_OPS)


@st.composite
def programs_(draw: st.DrawFn) -> Program:
    body = draw(regions_(_params(2), draw(st.integers(1, 3)), 2))
    return Program("random", body)


PASSES = (dce, cse, fold, simplify, compose_views, inline, tidy_captures, optimize)


@given(p=programs_())
@settings(max_examples=100, deadline=None)
def test_passes_change_no_bit_of_random_programs(p: Program) -> None:
    verify(p)
    for apply_pass in PASSES:
        assert_same_results(p, apply_pass(p))


@given(p=programs_())
@settings(max_examples=40, deadline=None)
def test_optimized_programs_are_not_larger(p: Program) -> None:
    def size(q: Program) -> int:
        return sum(1 for _ in walk(q.body))

    assert size(optimize(p)) <= size(p)


def test_passes_take_long_programs() -> None:
    x = value("f64[]")
    eqns = [apply("add", x, x)]
    for _ in range(5000):
        eqns.append(apply("add", out(eqns[-1]), x))
    p = program([x], eqns, out(eqns[-1]))
    assert_same_results(p, optimize(p))


@pytest.mark.parametrize(
    ("dtype", "exponent", "op"),
    [
        ("float32", 2, "square"),
        ("float64", 0.5, "sqrt"),
        ("float16", -1, "reciprocal"),
        ("int32", 2, "square"),
        ("float64", 1, None),
        ("float16", 0.5, "power"),
        ("int32", -1, "power"),
        ("float64", 3, "power"),
        ("complex64", 2, "power"),
    ],
)
def test_powers_are_what_numpy_computes_them_by(
    dtype: str, exponent: float, op: str | None
) -> None:
    ends = [-np.inf, np.inf, np.nan] if dtype.startswith("float") else []
    x = np.array([0, 1, 2, -3, 7, *ends]).astype(dtype)
    base = Value(ArrayType(dtype, x.shape))
    exponents = Literal(np.asarray(exponent, dtype)[()], ArrayType(dtype))
    eqn = Eqn(get("power"), (base, exponents), (Value(base.type),))
    simplified = simplify(verify(program([base], [eqn], out(eqn))))
    assert [e.op.name for e in walk(simplified.body)] == ([] if op is None else [op])
    if (dtype, exponent) != ("int32", -1):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(interpret.run(simplified, x)[0], x**exponents.value)


def test_a_pass_may_not_change_types() -> None:
    """A weak product by 1 is strong: the operand cannot stand for it."""
    x = value("~f64[]")
    type_ = get("multiply").result_types([x.type, ArrayType(np.dtype(float))], {})[0]
    eqn = Eqn(get("multiply"), (x, Literal(np.float64(1), ArrayType("float64"))), (Value(type_),))
    p = verify(program([x], [eqn], out(eqn)))
    assert body_text(simplify(p)) == ["b: f64[] = multiply a 1.0", "return b"]


@pytest.mark.parametrize("index", [-99, -3, -1, 0, 2, 99])
def test_elements_and_windows_at_known_places_are_views(index: int) -> None:
    x, y = value("f64[3,4]"), value("f64[3,4]")
    row = apply("gather", x, literal(index), dims=(0,))
    element = apply("gather", x, literal(index), literal(-index), dims=(0, 1))
    window = apply("dynamic_slice", y, literal(index), literal(1), sizes=(2, 2))
    p = program([x, y], [row, element, window], out(row), out(element), out(window))
    simplified = simplify(verify(p))
    assert {eqn.op.name for eqn in walk(simplified.body)} == {"slice", "reshape"}
    assert_same_results(p, verify(simplified))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "bool", "complex64"])
@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all", "argmin", "argmax"])
@pytest.mark.parametrize("shape", [(1,), (3, 1), (1, 4, 1), (2, 1, 3)])
def test_folds_of_one_element_are_views(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    if (name in ("any", "all")) != (dtype == "bool"):
        return
    axes = tuple([axis for axis, extent in enumerate(shape) if extent == 1])
    x = Value(ArrayType(np.dtype(dtype), shape))
    eqn = apply(name, x, axes=axes)
    p = program([x], [eqn], out(eqn))
    simplified = verify(simplify(verify(p)))
    left = {each.op.name for each in walk(simplified.body)}
    kept = {"prod"} if (name, dtype) == ("prod", "complex64") else set()
    assert left <= {"reshape", "add", "broadcast_to"} | kept
    elements = [-0.0, 2, np.nan, -np.inf, 7, 1] if dtype[0] in "fc" else [0, 1, 2, 3, 1, 0]
    values = np.resize(np.array(elements).astype(dtype), shape)
    ours, numpys = (np.asarray(interpret.run(each, values)[0]) for each in (simplified, p))
    assert ours.tobytes() == numpys.tobytes()


def test_folds_of_several_elements_stay() -> None:
    x = value("f64[3,1]")
    eqn = apply("sum", x, axes=(0, 1))
    p = program([x], [eqn], out(eqn))
    assert simplify(p) is p
