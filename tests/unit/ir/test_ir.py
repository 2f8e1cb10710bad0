from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.programs.by_hand import apply, literal, out, program, region, value
from tracegraph.ir.program import Literal, Value, walk
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source


def test_inputs_are_the_parameters_that_no_constant_is_bound_to() -> None:
    x, c = value("f64[2]"), value("i64[3]")
    p = program([x, c], [], c, constants=[np.arange(3)])
    assert p.inputs == (x,)
    assert list(map(str, p.in_types)) == ["f64[2]"]
    assert list(map(str, p.out_types)) == ["i64[3]"]


def test_walk_visits_nested_equations_after_the_one_around_them() -> None:
    p, x, v, w = value("bool[]"), value("f64[]"), value("f64[]"), value("f64[]")
    sin, cos = apply("sin", v), apply("cos", w)
    chosen = apply(
        "cond", p, x, regions=[region([v], [sin], out(sin)), region([w], [cos], out(cos))]
    )
    last = apply("negative", out(chosen))
    body = program([p, x], [chosen, last], out(last)).body
    assert list(walk(body)) == [chosen, sin, cos, last]


@pytest.mark.parametrize("file", ["/home/user/solver.py", "C:\\user\\solver.py", "solver.py"])
def test_source_shows_the_file_without_its_folder(file: str) -> None:
    assert str(Source(file, 12, "solve")) == "solver.py:12"


def test_literals_have_the_dtype_of_their_type() -> None:
    found = Literal.of(1, ArrayType("float32", (3,), True))
    assert found.value.dtype == np.float32
    assert str(found.type) == "~f32[]"
    with pytest.raises(OverflowError):
        Literal.of(300, ArrayType("uint8"))


def test_values_and_equations_are_compared_by_identity() -> None:
    x = value("f64[]")
    assert x != value("f64[]")
    assert apply("sin", x) != apply("sin", x)
    assert literal(1) != literal(1)


def test_values_are_the_same_only_if_they_are_one() -> None:
    type_ = ArrayType("float32", (3,))
    one, other = Value(type_), Value(type_)
    assert one != other
    assert len({one, other, one}) == 2
    assert not hasattr(one, "__dict__")


def test_equal_types_are_one_key_in_another_process_too() -> None:
    type_ = ArrayType("bfloat16", (3, 4), weak=True)
    assert hash(ArrayType("bfloat16", (3, 4), True)) == hash(type_)
    assert {type_, ArrayType("bfloat16", (3, 4))} == {
        pickle.loads(pickle.dumps(type_)),
        type_.strong(),
    }
    text = (
        "import pickle, sys\n"
        "from tracegraph import ArrayType\n"
        "assert pickle.load(sys.stdin.buffer) in {ArrayType('bfloat16', (3, 4), True)}\n"
    )
    subprocess.run([sys.executable, "-c", text], input=pickle.dumps(type_), check=True)
