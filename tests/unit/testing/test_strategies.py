"""Arrays and scalars for tests: of the types that texts describe, whole ranges of dtypes."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import tracegraph
from tests.helpers.processes import end_of
from tracegraph.dtypes import SHORT_NAMES, bfloat16
from tracegraph.testing import arrays, assert_traced_equals_eager, scalars
from tracegraph.testing.array_texts import parsed

UNSHRUNK = settings(max_examples=3000, phases=[Phase.generate], database=None, derandomize=True)

each_dtype = pytest.mark.parametrize("dtype", SHORT_NAMES, ids=str)
FLOATS = [dtype for dtype in SHORT_NAMES if dtype.kind in "fV"]


def ranges(dtype: Any) -> Any:
    return np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else ml_dtypes.finfo(dtype)


@given(drawn=arrays("f32[n,3]", "i64[n]", "bool[2, m]", "c64[m]", "bf16[]", "uint8[0,n]"))
def test_sizes_of_one_name_are_equal(drawn: Any) -> None:
    shapes = [x.shape for x in drawn]
    n, m = len(drawn[1]), len(drawn[3])
    assert shapes == [(n, 3), (n,), (2, m), (m,), (), (0, n)]
    assert [SHORT_NAMES[x.dtype] for x in drawn] == ["f32", "i64", "bool", "c64", "bf16", "u8"]
    assert all(isinstance(x, np.ndarray) for x in drawn)
    assert 0 <= n <= 6


@given(x=arrays("f64[n,m,n]", sizes={"n": 2, "m": (3, 4)}, min_value=-1, max_value=2.5))
def test_sizes_and_ranges_are_those_given(x: Any) -> None:
    assert x.shape in [(2, 3, 2), (2, 4, 2)]
    assert ((x >= -1) & (x <= 2.5)).all()


def test_one_text_gives_an_array_and_elements_may_be_given() -> None:
    drawn = find(arrays("i16[4]", elements=st.just(7)), lambda x: True, settings=UNSHRUNK)
    assert drawn.tolist() == [7] * 4


@pytest.mark.parametrize("text", ["f64[n,3]", "bf16[n,m]", "i32[2,m]"])
def test_layouts_are_of_several_kinds(text: str) -> None:
    sizes = dict.fromkeys(parsed(text).names, (2, 3))
    strategy = arrays(text, layouts=True, sizes=sizes)
    for kind in (
        lambda x: x.flags.c_contiguous,
        lambda x: x.flags.f_contiguous and not x.flags.c_contiguous,
        lambda x: any(s < 0 for s in x.strides),
        lambda x: not (x.flags.c_contiguous or x.flags.f_contiguous) and min(x.strides) > 0,
    ):
        assert find(strategy, kind, settings=UNSHRUNK).dtype == parsed(text).dtype


@each_dtype
def test_scalars_reach_the_ends_of_a_dtype(dtype: Any) -> None:
    strategy = scalars(dtype)

    def exists(accept: Any) -> None:
        assert isinstance(find(strategy, accept, settings=UNSHRUNK), dtype.type)

    exists(lambda x: x == 0)
    if dtype.kind in "iu":
        exists(lambda x: x == ranges(dtype).max)
        exists(lambda x: x == ranges(dtype).min)
    elif dtype.kind == "b":
        exists(lambda x: x)
    else:
        exists(lambda x: np.real(x) < -100)
        exists(lambda x: np.real(x) == 0 and np.signbit(np.real(x)))


@each_dtype
def test_scalars_are_finite_unless_wanted(dtype: Any) -> None:
    @given(x=scalars(dtype))
    def check(x: Any) -> None:
        assert type(x) is dtype.type
        assert np.isfinite(x)

    check()
    if dtype.kind in "fcV":
        special = scalars(dtype, finite=False)
        assert np.isnan(find(special, lambda x: bool(np.isnan(x)), settings=UNSHRUNK))
        assert np.isinf(find(special, lambda x: bool(np.isinf(x)), settings=UNSHRUNK))


@pytest.mark.parametrize("dtype", [d for d in SHORT_NAMES if d.kind not in "cb"], ids=str)
def test_scalars_are_within_ranges(dtype: Any) -> None:
    @given(x=scalars(dtype, min_value=1.3, max_value=99.7), y=scalars(dtype, max_value=0.1))
    def check(x: Any, y: Any) -> None:
        assert 1.3 <= float(x) <= 99.7
        assert float(y) <= 0.1

    check()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ranges_beyond_a_dtype_end_with_it(dtype: Any) -> None:
    @given(x=scalars(dtype, min_value=float("-inf"), max_value=1e308))
    def check(x: Any) -> None:
        assert np.isfinite(x)

    check()


def test_short_names_and_numpys_mean_the_same() -> None:
    assert parsed("bf16[]").dtype == bfloat16
    assert parsed("float32 [ n , 3 ]") == parsed("f32[n,3]")
    assert type(find(scalars("u8"), lambda x: True, settings=UNSHRUNK)) is np.uint8


def distances(points: Any, center: Any) -> Any:
    return tracegraph.map(lambda p: np.sqrt(np.sum((p - center) ** 2)), points)


@settings(max_examples=5)
@given(drawn=arrays("f64[n,3]", "f64[3]", min_value=-9, max_value=9, layouts=True))
def test_a_function_of_a_user(drawn: Any) -> None:
    assert_traced_equals_eager(distances, *drawn, ulps=4)


# misuse


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        (["f32"], {}, ValueError, r"'f32' does not describe an array; write it like 'f32\[n,3\]'"),
        (["f32[n"], {}, ValueError, "does not describe an array"),
        (["f33[n]"], {}, ValueError, r"'f33\[n\]' has the dtype 'f33'; the dtypes are bool, i8"),
        (["f32[n,-1]"], {}, ValueError, "has the extent '-1'; an extent is a number of at least 0"),
        (["f32[n,]"], {}, ValueError, "has the extent ''"),
        ([np.float32], {}, TypeError, r"a text such as 'f32\[n,3\]', got <class 'numpy.float32'>"),
        (["f32[n]"], {"sizes": {"m": 3}}, ValueError, "sizes has 'm', but the arrays have n"),
        (["f32[3]"], {"sizes": {"m": 3}}, ValueError, "but the arrays have no names"),
        (["f32[n]"], {"sizes": {"n": (3, 1)}}, ValueError, "no size of at least 0: got (3, 1)"),
        (["f32[n]"], {"sizes": {"n": "3"}}, TypeError, "an int or a pair of ints, not '3'"),
        (["c64[n]"], {"min_value": 1}, ValueError, "complex64 has no order"),
        (["u8[n]"], {"max_value": -1}, ValueError, "uint8 has no number from min_value=None"),
        (["f32[n]"], {"min_value": 2, "max_value": 1}, ValueError, "from min_value=2 to max_value"),
        (["f16[n]"], {"min_value": 1e6}, ValueError, "float16 has no number from min_value"),
    ],
)
def test_misuse_is_said(arguments: Any, options: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind) as caught:
        arrays(*arguments, **options)
    assert message.replace("\\", "") in str(caught.value)


def test_scalars_of_other_dtypes_are_refused() -> None:
    with pytest.raises(TypeError, match="dtype <U1 is not supported"):
        scalars("U1")


# without hypothesis


def test_without_hypothesis_the_assertion_works_and_strategies_say_what_to_install() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import tracegraph.testing as t\n"
        "t.assert_traced_equals_eager(lambda x: x + 1, 1)\n"
        "for name in ('arrays', 'scalars', 'programs', 'RandomProgram'):\n"
        "    try: getattr(t, name)\n"
        "    except ImportError as error: print(error)\n"
    )
    text = "needs hypothesis, which is not installed: pip install 'tracegraph[testing]'\n"
    names = ("arrays", "scalars", "programs", "RandomProgram")
    assert end_of(code) == (0, "".join(f"tracegraph.testing.{n} {text}" for n in names), "")


def test_names_are_those_of_functions_whatever_is_imported_first() -> None:
    code = (
        "from tracegraph.testing import RandomProgram, assert_traced_equals_eager, arrays\n"
        "from tracegraph.testing import programs, scalars, check_kernel\n"
        "print(*map(callable, (RandomProgram, arrays, programs, scalars)))\n"
    )
    assert end_of(code) == (0, "True True True True\n", "")


def test_names_are_listed_and_others_missing() -> None:
    testing = sys.modules["tracegraph.testing"]
    assert dir(testing) == sorted(testing.__all__)
    for name in testing.__all__:
        assert getattr(testing, name) is not None
    with pytest.raises(AttributeError, match=r"tracegraph\.testing' has no attribute 'array'"):
        testing.array  # noqa: B018
