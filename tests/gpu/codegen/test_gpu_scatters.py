"""Updates that collide, in parallel: what NumPy gives, and in `deterministic` blocks, its bits."""

import numpy as np
import pytest

import tracegraph
from tests.helpers.parameters import in_turn
from tests.helpers.wide_integers import wide_integers
from tracegraph.dtypes import bfloat16

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", bfloat16, "float32", "float64")
COMPLEX = ("complex64", "complex128")
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
EPSILON = {
    np.dtype("float16"): 2.0**-11,
    np.dtype(bfloat16): 2.0**-8,
    **{np.dtype(d): np.finfo(d).eps / 2 for d in ("float32", "float64", *COMPLEX)},
}
COUNT = 20_000

PLACES = {
    "few": (8, lambda random: random.integers(0, 8, COUNT)),
    "many": (5000, lambda random: random.integers(0, 5000, COUNT)),
    "the same": (5000, lambda random: np.full(COUNT, 4999)),
    "out of range": (5000, lambda random: random.integers(-10_000, 10_000, COUNT)),
}


def numbers(dtype, shape, random, method):
    """Updates; factors are few enough other than one that products stay in range."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu":
        return wide_integers(random, dtype, shape)
    if method == "multiply":
        return np.where(random.random(shape) < 0.001, 1.25, 1.0).astype(dtype)
    if dtype.kind == "c":
        return (random.uniform(-1, 1, shape) + 1j * random.uniform(-1, 1, shape)).astype(dtype)
    return random.uniform(-1, 1, shape).astype(dtype)


def updated(method):
    return lambda x, i, v: getattr(x.at[i], method)(v)


def expected_of(method, x, i, v):
    """NumPy's result, in double precision for 16-bit floats, and a bound of the error."""
    inside = (i >= -len(x)) & (i < len(x))
    dtype = x.dtype
    kind = np.complex128 if dtype.kind == "c" else np.float64
    exact = dtype.kind in "biu" or method in ("min", "max")
    result = x.copy() if exact else x.astype(kind)
    given = v if exact else v.astype(kind)
    with np.errstate(all="ignore"):
        UFUNCS[method].at(result, i[inside], given[inside])
    if exact:
        return result, None
    count = np.zeros(len(x))
    np.add.at(count, i[inside], 1)
    count = count.reshape(-1, *(1,) * (x.ndim - 1)) + 1
    if method == "multiply":
        return result, 2 * count * EPSILON[dtype] * np.abs(result)
    total = np.abs(x.astype(kind))
    np.add.at(total, i[inside], np.abs(given[inside]))
    return result, 2 * count * EPSILON[dtype] * total


def assert_expected(found, expected):
    result, bound = expected
    found = np.asarray(found)
    if bound is None:
        assert found.dtype == result.dtype
        np.testing.assert_array_equal(found, result)
    else:
        assert (np.abs(found.astype(result.dtype) - result) <= bound).all()


def updates(method, dtype):
    """The update in each of PLACES as one program, and its arguments: [(x, i, v), …]."""
    random = np.random.default_rng(1)
    given = [
        (numbers(dtype, n, random, method), make(random), numbers(dtype, COUNT, random, method))
        for n, make in PLACES.values()
    ]
    return lambda each: [updated(method)(*one) for one in each], given


ELEMENTS = ["bool", *INTEGERS, *FLOATS, *COMPLEX]


@pytest.mark.parametrize(("dtype", "method"), in_turn(ELEMENTS, UFUNCS, rounds=2), ids=str)
def test_updates_of_elements(dtype, method):
    program, given = updates(method, dtype)
    for found, one in zip(tracegraph.jit(program, device="cuda")(given), given, strict=True):
        assert_expected(found, expected_of(method, *one))


@pytest.mark.parametrize("dtype", ["int16", "int32", "float16", "float32", "complex128"])
@pytest.mark.parametrize("method", UFUNCS)
def test_updates_of_rows(method, dtype):
    random = np.random.default_rng(2)
    i = random.integers(0, 40, 3000)
    x, v = (numbers(dtype, (n, 7), random, method) for n in (40, 3000))
    found = tracegraph.jit(updated(method), device="cuda")(x, i, v)
    assert_expected(found, expected_of(method, x, i, v))


@pytest.mark.parametrize(
    ("dtype", "places"),
    in_turn(["int32", "uint64", "float32", "float64", *COMPLEX], [1, 8, 2048]),
)
def test_many_sums_of_few_elements(dtype, places):
    """Enough updates that blocks fold them in shared memory first."""
    random = np.random.default_rng(8)
    count = 1 << 22
    i = random.integers(0, places + 1, count)  # the last is out of range
    x, v = (numbers(dtype, n, random, "add") for n in (places, count))
    found = tracegraph.jit(updated("add"), device="cuda")(x, i, v)
    assert_expected(found, expected_of("add", x, i, v))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("method", ["min", "max"])
def test_extremes_of_nan_and_zeros_have_the_same_bits_in_each_run(method, dtype):
    random = np.random.default_rng(3)
    x = np.zeros(64, dtype)
    v = random.choice(np.array([0.0, -0.0, np.nan, 1.0, -1.0], dtype), COUNT)
    v[-64:] = np.zeros(64, dtype)
    i = np.where(np.isnan(v.astype(float)), random.integers(0, 8, COUNT), np.arange(COUNT) % 64)
    f = tracegraph.jit(updated(method), device="cuda")
    first = np.asarray(f(x, i, v))
    order = random.permutation(COUNT)
    assert first.tobytes() == np.asarray(f(x, i[order], v[order])).tobytes()
    np.testing.assert_array_equal(
        first.astype(float), expected_of(method, x, i, v)[0].astype(float)
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
@pytest.mark.parametrize("method", ["add", "multiply"])
def test_deterministic_updates_have_the_bits_of_the_sequence(method, dtype):
    random = np.random.default_rng(4)
    i = random.integers(-70, 70, COUNT)
    x, v = (numbers(dtype, n, random, method) for n in (50, COUNT))
    f = tracegraph.jit(updated(method), device="cuda")
    with tracegraph.deterministic():
        first, second = (np.asarray(f(x, i, v)) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    inside = (i >= -50) & (i < 50)
    sequence = x.copy()
    UFUNCS[method].at(sequence, i[inside], v[inside])
    assert first.tobytes() == sequence.tobytes()


@pytest.mark.parametrize(
    ("dtype", "method"), in_turn(ELEMENTS, [*UFUNCS, "set"], rounds=2), ids=str
)
def test_unique_updates(method, dtype):
    """Plain stores; those out of range are dropped, and may repeat."""
    random = np.random.default_rng(9)
    i = random.permutation(3 * COUNT)[:COUNT] - COUNT // 2
    i = np.where(i < 0, 4 * COUNT, i)
    x, v = (numbers(dtype, n, random, method) for n in (2 * COUNT, COUNT))

    def promised(x, i, v):
        return getattr(x.at[i], method)(v, unique=True)

    plain = tracegraph.jit(lambda x, i, v: getattr(x.at[i], method)(v), device="host")
    found = tracegraph.jit(promised, device="cuda")(x, i, v)
    expected = plain(x, i, v)
    if method == "multiply" and x.dtype.kind == "c":
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    else:
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_the_gradient_of_unique_reads_and_products():
    def total(x, i, v):
        return (
            np.sin(x.at[i].multiply(v, unique=True)).sum() + (x.at[i].get(unique=True) ** 3).sum()
        )

    random = np.random.default_rng(10)
    x, v, i = (
        random.uniform(1, 2, 5000),
        random.uniform(1, 2, 3000),
        random.permutation(5000)[:3000],
    )
    slopes = tracegraph.grad(total, (0, 2))
    for found, expected in zip(
        tracegraph.jit(slopes, device="cuda")(x, i, v),
        tracegraph.jit(slopes, device="host")(x, i, v),
        strict=True,
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_a_broken_promise_raises_in_a_checked_block():
    f = tracegraph.jit(lambda x, i: x.at[i].add(1.0, unique=True), device="cuda")
    x = np.zeros(100_000)
    i = np.random.default_rng(11).permutation(100_000)
    with tracegraph.check_indices():
        np.testing.assert_array_equal(np.asarray(f(x, i)), 1.0)
        i[70_000] = i[3]
        with pytest.raises(tracegraph.errors.RepeatedIndexError):
            np.asarray(f(x, i))


@pytest.mark.parametrize(
    ("dtype", "places", "method"),
    in_turn([*FLOATS, *COMPLEX], PLACES, ["add", "multiply", "set"], rounds=4),
    ids=str,
)
def test_sorted_updates_have_the_bits_of_the_sequence(places, method, dtype):
    random = np.random.default_rng(12)
    n, make = PLACES[places]
    x, i, v = (
        numbers(dtype, n, random, method),
        make(random),
        numbers(dtype, COUNT, random, method),
    )
    f = tracegraph.jit(updated(method), device="cuda")
    on_host = tracegraph.jit(updated(method), device="host")
    with tracegraph.deterministic():
        first, second = (np.asarray(f(x, i, v)) for _ in range(2))
        expected = np.asarray(on_host(x, i, v))
    assert first.tobytes() == second.tobytes() == expected.tobytes()


def test_sorted_updates_of_rows_in_loops_and_branches():
    random = np.random.default_rng(13)
    x, v = random.uniform(-1, 1, (300, 9)), random.uniform(-1, 1, (5000, 9))
    i = random.integers(-400, 400, 5000)

    def repeated(x, i, v):
        def step(k, x):
            x = tracegraph.cond(
                k % 2 == 0, lambda x: x.at[i].add(v), lambda x: x.at[i - 1].set(v), x
            )
            return x.at[(i + k) // 2, 3].multiply(1 + v[:, 0] / 100)

        return tracegraph.fori_loop(0, 6, step, x)

    with tracegraph.deterministic():
        found = np.asarray(tracegraph.jit(repeated, device="cuda")(x, i, v))
        expected = np.asarray(tracegraph.jit(repeated, device="host")(x, i, v))
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("places", [3, 1000, 1 << 20])
def test_a_million_sums_in_order(places):
    random = np.random.default_rng(14)
    x, v = np.zeros(places, np.float32), random.uniform(-1, 1, 1 << 20).astype(np.float32)
    i = random.integers(0, places, 1 << 20)
    with tracegraph.deterministic():
        found = np.asarray(tracegraph.jit(updated("add"), device="cuda")(x, i, v))
    expected = x.copy()
    np.add.at(expected, i, v)
    assert found.tobytes() == expected.tobytes()


def on_device_and_host(function, *arguments):
    """What a function gives on the GPU and on the host; its numbers are exact in any order."""
    found = tracegraph.jit(function, device="cuda")(*arguments)
    expected = tracegraph.jit(function, device="host")(*arguments)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


WHOLE = np.random.default_rng(5).integers(-9, 9, COUNT).astype(np.float32)
BINS = np.random.default_rng(6).integers(0, 50, COUNT)


@pytest.mark.parametrize("schedule", ["conditional", "unrolled"])
def test_a_carry_that_is_updated_in_place(schedule):
    def repeated(bins, v):
        def step(k, total):
            np.add.at(total, (bins + k) % 50, v)
            return total

        start = np.zeros_like(v, shape=50)
        return tracegraph.fori_loop(0, 7, step, start, schedule=schedule)

    on_device_and_host(repeated, BINS, WHOLE)


def test_while_loops_whose_updates_read_the_carry():
    def repeated(bins, v):
        def step(state):
            total, k = state
            return total.at[bins].add(total[bins] % 3 + v), k + 1

        start = np.zeros_like(v, shape=50)
        return tracegraph.while_loop(lambda s: s[1] < 5, step, (start, 0))[0]

    on_device_and_host(repeated, BINS, WHOLE)


def test_scans_that_give_the_updated_array_at_each_step():
    def scanned(bins, v):
        def step(total, row):
            index, value = row
            total = total.at[index].add(value).at[index].max(value)
            return total, total * 2

        start = np.zeros_like(v, shape=50)
        return tracegraph.scan(step, start, (bins.reshape(20, -1), v.reshape(20, -1)))[1]

    on_device_and_host(scanned, BINS, WHOLE)


def test_readers_of_the_array_before_and_after():
    def read(bins, v):
        before = v[:50] * 2
        after = before.at[bins].add(v)
        again = after.at[bins[::-1]].min(v + after[bins])
        return before + after[::-1] + again

    on_device_and_host(read, BINS, WHOLE)


def test_two_small_scatters_that_may_share_a_kernel():
    def two(bins, v):
        few, values = bins[:200], v[:200]
        first = np.zeros_like(v, shape=50).at[few].add(values)
        second = np.zeros_like(v, shape=50).at[few[::-1]].max(values)
        return np.stack([first, second])

    on_device_and_host(two, BINS, WHOLE)


def test_a_donated_array():
    x, i = np.arange(10, dtype=np.int8), np.array([3, 3, 9, 0] * 100)
    f = tracegraph.jit(lambda x, i: x.at[i].add(1), device="cuda", donate_argnums=0)
    found = f(tracegraph.asarray(x, device="cuda"), i)
    expected = x.copy()
    np.add.at(expected, i, 1)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_the_ranks_of_pages():
    random = np.random.default_rng(7)
    pages, links = 300, 4000
    source, target = random.integers(0, pages, (2, links))
    degree = np.maximum(np.bincount(source, minlength=pages), 1)

    def ranks(source, target, degree):
        def step(k, rank):
            flow = np.zeros_like(rank)
            np.add.at(flow, target, (rank / degree)[source])
            return 0.15 / pages + 0.85 * flow

        return tracegraph.fori_loop(0, 30, step, np.full_like(degree, 1 / pages, dtype=float))

    found = tracegraph.jit(ranks, device="cuda")(source, target, degree)
    np.testing.assert_allclose(np.asarray(found), ranks(source, target, degree), rtol=1e-12)
