"""For tests: random programs, and one assertion that a function means the same traced and eager.

`programs()` is a hypothesis strategy. Its functions are written with plain NumPy and tracegraph's control
flow, and are exact by construction: every number is a small integer, in whatever dtype, so that neither
the order of a sum nor fused arithmetic can show, and all ways of running one must agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tracegraph

DTYPES = tuple(map(np.dtype, ("int8", "int32", "int64", "uint16", "float32", "float64")))
LIMIT = 100
"""Values are brought into -LIMIT..LIMIT after every step, which keeps all sums exact."""

Env = list[Any]
Step = Callable[[Env], Any]


@dataclass(frozen=True, slots=True)
class Known:
    """What the generator knows of a value: enough to choose legal steps."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class RandomProgram:
    """A function and arguments for it. `text` lists its steps."""

    function: Callable[..., Any]
    arguments: tuple[np.ndarray[Any, Any], ...]
    text: str

    def __repr__(self) -> str:
        arguments = ", ".join(repr(a) for a in self.arguments)
        return f"{self.text}\n  on {arguments}"


def assert_traced_equals_eager(
    function: Callable[..., Any], *arguments: Any, run: Callable[..., Any] | None = None
) -> None:
    """Assert that `function` gives the same arrays eagerly and traced: dtypes, shapes and every bit.

    `run(function, *arguments)` is how the traced function is run; `tracegraph.jit` by default.

    Raises:
        AssertionError: a leaf of the result differs.

    >>> assert_traced_equals_eager(lambda x: x + 1, np.arange(3))
    """
    runner = run or (lambda f, *a: tracegraph.jit(f)(*a))
    eager = tracegraph.tree.leaves(function(*arguments))
    traced = tracegraph.tree.leaves(runner(function, *arguments))
    assert len(eager) == len(traced), f"{len(eager)} leaves eagerly, {len(traced)} traced"
    for k, (wanted, got) in enumerate(zip(eager, traced, strict=True)):
        a, b = np.asarray(wanted), np.asarray(got)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"leaf {k}: {a.dtype}{a.shape} is {b.dtype}{b.shape}"
        np.testing.assert_array_equal(b, a, err_msg=f"leaf {k}", strict=True)


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 8, max_depth: int = 2) -> RandomProgram:
    """Random functions of one to three arrays, with nested control flow, and arguments for them."""
    arguments = tuple(draw(_arrays()) for _ in range(draw(st.integers(1, 3))))
    known = [Known(a.shape, a.dtype) for a in arguments]
    lines: list[str] = []
    body, results = _draw_body(draw, known, max_steps, max_depth, lines, "  ")

    def function(*arrays: Any) -> tuple[Any, ...]:
        env = list(arrays)
        for step in body:
            env.append(step(env))
        return tuple(env[i] for i in results)

    text = "\n".join(["program:", *lines, f"  return {results}"])
    return RandomProgram(function, arguments, text)


@st.composite
def _arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 5]), max_size=3)))
    dtype = draw(st.sampled_from(DTYPES))
    low = 0 if dtype.kind == "u" else -9
    seed = draw(st.integers(0, 2**16))
    return np.random.default_rng(seed).integers(low, 10, shape).astype(dtype)


def _draw_body(
    draw: st.DrawFn, known: Sequence[Known], max_steps: int, depth: int, lines: list[str], pad: str
) -> tuple[list[Step], list[int]]:
    """Steps that extend an environment, and the positions of some results in it."""
    known = list(known)
    first = len(known)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, max_steps))):
        kinds = [*_SIMPLE, *(_CONTROL if depth > 0 else ())]
        step, result, line = draw(st.sampled_from(kinds))(draw, known, depth, pad)
        lines.append(f"{pad}v{len(known)}: {result.dtype}{list(result.shape)} = {line}")
        steps.append(step)
        known.append(result)
    made = list(range(first, len(known)))
    chosen = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
    return steps, [*chosen, made[-1]]


def _pick(draw: st.DrawFn, known: Sequence[Known], accept: Callable[[Known], bool]) -> int | None:
    fitting = [i for i, k in enumerate(known) if accept(k)]
    # later values more often: long chains are where fusion can go wrong
    return draw(st.sampled_from(fitting[-4:] + fitting)) if fitting else None


def bounded(x: Any) -> Any:
    """`x` brought into the range where all arithmetic is exact, dtype kept."""
    return np.clip(x, 0 if x.dtype.kind == "u" else -LIMIT, LIMIT).astype(x.dtype)


Drawn = tuple[Step, Known, str]


def _unary(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    function = draw(st.sampled_from([np.negative, np.absolute, np.sign, np.square, np.invert]))
    if function is np.invert and known[i].dtype.kind == "f":
        function = np.rint
    return (lambda env: bounded(function(env[i]))), known[i], f"{function.__name__} v{i}"


def _binary(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    j = _pick(draw, known, lambda k: _broadcast(known[i].shape, k.shape) is not None)
    assert j is not None
    function = draw(
        st.sampled_from([np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.floor_divide])
    )
    shape = _broadcast(known[i].shape, known[j].shape)
    assert shape is not None
    dtype = np.result_type(known[i].dtype, known[j].dtype)

    def step(env: Env) -> Any:
        right = env[j]
        if function is np.floor_divide:
            right = np.where(right == 0, np.ones_like(right), right)
        return bounded(function(env[i], right))

    return step, Known(shape, dtype), f"{function.__name__} v{i} v{j}"


def _scalar(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    number = draw(st.integers(1, 5))
    return (lambda env: bounded(env[i] * number + 1)), known[i], f"v{i} * {number} + 1"


def _where(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    j = _pick(draw, known, lambda k: k.shape == known[i].shape)
    assert j is not None
    dtype = np.result_type(known[i].dtype, known[j].dtype)
    return (
        (lambda env: np.where(env[i] > 0, env[j], env[i])),
        Known(known[i].shape, dtype),
        f"where v{i} > 0, v{j}, v{i}",
    )


def _cast(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    dtype = draw(st.sampled_from(DTYPES))
    return (
        (lambda env: np.absolute(env[i]).astype(dtype)),
        Known(known[i].shape, dtype),
        f"|v{i}| as {dtype}",
    )


def _reduce(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda k: len(k.shape) > 0)
    if i is None:
        return _unary(draw, known, depth, pad)
    rank = len(known[i].shape)
    function = draw(st.sampled_from([np.sum, np.min, np.max, np.argmax, np.argmin, np.any]))
    single = function in (np.argmax, np.argmin)
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=1 if single else rank, unique=True))
    axis: Any = axes[0] if len(axes) == 1 else tuple(axes)
    keepdims = draw(st.booleans())
    dtype = known[i].dtype
    shape = tuple(
        1 if a in axes else n for a, n in enumerate(known[i].shape) if keepdims or a not in axes
    )

    def step(env: Env) -> Any:
        return bounded(function(env[i], axis=axis, keepdims=keepdims).astype(dtype))

    return step, Known(shape, dtype), f"{function.__name__} v{i} axis={axis} keepdims={keepdims}"


def _accumulate(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda k: len(k.shape) > 0)
    if i is None:
        return _unary(draw, known, depth, pad)
    axis = draw(st.integers(0, len(known[i].shape) - 1))
    dtype = known[i].dtype
    return (
        (lambda env: bounded(np.cumsum(env[i], axis=axis).astype(dtype))),
        known[i],
        f"cumsum v{i} axis={axis}",
    )


def _rearrange(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda k: len(k.shape) > 0)
    if i is None:
        return _unary(draw, known, depth, pad)
    shape = known[i].shape
    axis = draw(st.integers(0, len(shape) - 1))
    choice = draw(st.sampled_from(["transpose", "flip", "roll", "ravel", "slice", "pad", "double", "expand"]))
    function: Callable[[Any], Any] = {
        "transpose": np.transpose,
        "flip": lambda x: np.flip(x, axis),
        "roll": lambda x: np.roll(x, 1, axis),
        "ravel": np.ravel,
        "slice": lambda x: x[(slice(None),) * axis + (slice(None, None, -1 if shape[axis] < 3 else 2),)],
        "pad": lambda x: np.pad(x, [(1, 0) if a == axis else (0, 0) for a in range(len(shape))]),
        "double": lambda x: np.concatenate([x, x + 1], axis),
        "expand": lambda x: np.expand_dims(x, axis),
    }[choice]
    result = function(np.zeros(shape, known[i].dtype))
    if result.size > 200 or result.ndim > 4:
        return _unary(draw, known, depth, pad)
    return (lambda env: function(env[i])), Known(result.shape, known[i].dtype), f"{choice} v{i} {axis}"


def _index(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda k: len(k.shape) > 0)
    if i is None:
        return _unary(draw, known, depth, pad)
    n = known[i].shape[0]
    where = np.array(draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4)))
    if draw(st.booleans()):
        shape = (len(where), *known[i].shape[1:])
        return (lambda env: env[i][where]), Known(shape, known[i].dtype), f"v{i}[{where.tolist()}]"

    def update(env: Env) -> Any:
        y = env[i].copy()
        y[where] = y[where] + 1
        return bounded(y)

    return update, known[i], f"v{i}[{where.tolist()}] += 1"


def _cond(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    lines: list[str] = []
    branches = []
    for name in ("true", "false"):
        lines.append(f"{pad}  {name}:")
        steps, results = _draw_body(draw, known, 3, depth - 1, lines, pad + "    ")
        branches.append((steps, results[-1]))
    like = known[i]

    def branch(k: int, env: Env) -> Any:
        steps, result = branches[k]
        env = list(env)
        for step in steps:
            env.append(step(env))
        return _conform(env[result], like)

    def step(env: Env) -> Any:
        predicate = np.sum(env[i]) > 0
        return tracegraph.cond(predicate, lambda: branch(0, env), lambda: branch(1, env))

    return step, like, "\n".join([f"cond sum(v{i}) > 0", *lines])


def _while(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda _: True)
    assert i is not None
    like = known[i]
    lines: list[str] = []
    inner = [*known, like]
    steps, results = _draw_body(draw, inner, 3, depth - 1, lines, pad + "    ")
    trips = draw(st.integers(0, 4))

    def step(env: Env) -> Any:
        def body(state: tuple[Any, Any]) -> tuple[Any, Any]:
            x, k = state
            local = [*env, x]
            for inner_step in steps:
                local.append(inner_step(local))
            return _conform(local[results[-1]], like), k + 1

        return tracegraph.while_loop(lambda s: s[1] < trips, body, (env[i], 0))[0]

    return step, like, "\n".join([f"while {trips} trips from v{i} as v{len(known)}", *lines])


def _scan(draw: st.DrawFn, known: Sequence[Known], depth: int, pad: str) -> Drawn:
    i = _pick(draw, known, lambda k: len(k.shape) > 0)
    j = _pick(draw, known, lambda _: True)
    if i is None or j is None:
        return _unary(draw, known, depth, pad)
    like, row = known[j], Known(known[i].shape[1:], known[i].dtype)
    lines: list[str] = []
    steps, results = _draw_body(draw, [*known, like, row], 3, depth - 1, lines, pad + "    ")
    reverse = draw(st.booleans())

    def step(env: Env) -> Any:
        def body(carry: Any, x: Any) -> tuple[Any, Any]:
            local = [*env, carry, x]
            for inner_step in steps:
                local.append(inner_step(local))
            return _conform(local[results[-1]], like), _conform(local[results[0]], row)

        carry, ys = tracegraph.scan(body, env[j], env[i], reverse=reverse)
        return bounded(_conform(carry, row) + ys)

    text = f"scan v{i} from v{j} reverse={reverse} as v{len(known)}, v{len(known) + 1}"
    return step, known[i], "\n".join([text, *lines])


def _conform(x: Any, like: Known) -> Any:
    """`x` made into a value of a given shape and dtype: what control flow demands of its branches."""
    total = np.sum(x).astype(like.dtype)
    same = x.shape == like.shape
    shaped = x.astype(like.dtype) if same else np.broadcast_to(total, like.shape)
    return bounded(shaped + np.zeros(like.shape, like.dtype))


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return None
    return shape if int(np.prod(shape)) <= 200 else None


_SIMPLE = (_unary, _binary, _binary, _scalar, _where, _cast, _reduce, _accumulate, _rearrange, _index)
_CONTROL = (_cond, _while, _scan)
