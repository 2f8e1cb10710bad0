from __future__ import annotations

import re

import numpy as np

from tests.programs.by_hand import apply, literal, out, program, region, value
from tracegraph.ir.program import Program
from tracegraph.ir.text import program_text, value_name


def loop() -> Program:
    x, tol, table = value("f64[8]"), value("f64[]"), value("f64[8]")
    r = apply("subtract", x, table, line=12)
    a, k, t, b, n, u = (value(s) for s in ("f64[8]", "i64[]", "f64[]") * 2)
    low = apply("less", k, literal(10), line=14)
    double = apply("multiply", b, literal(2.0), line=15)
    count = apply("add", n, literal(1), line=16)
    y = apply(
        "while_loop",
        out(r),
        literal(0),
        tol,
        regions=[
            region([a, k, t], [low], out(low)),
            region([b, n, u], [double, count], out(double), out(count)),
        ],
        carry=2,
        line=14,
    )
    return program([x, tol, table], [r, y], *y.outputs, constants=[np.zeros(8)])


GOLDEN = """\
program solve(a: f64[8], b: f64[]) {
  const c0: f64[8]
  c: f64[8] = subtract a c0                        # solver.py:12
  d: f64[8], e: i64[] = while_loop[carry=2] c 0 b  # solver.py:14
    cond(f: f64[8], g: i64[], h: f64[]) {
      i: bool[] = less g 10                        # solver.py:14
      return i
    }
    body(j: f64[8], k: i64[], l: f64[]) {
      m: f64[8] = multiply j 2.0                   # solver.py:15
      n: i64[] = add k 1                           # solver.py:16
      return m, n
    }
  return d, e
}"""


def test_program_with_a_loop() -> None:
    assert program_text(loop()) == GOLDEN
    assert str(loop()) == program_text(loop())


def test_the_repr_is_a_line() -> None:
    line = "<Program solve(f64[8], f64[]) -> (f64[8], i64[]): 5 operations>"
    assert repr(loop()) == line
    x = value("f64[8]")
    assert (
        repr(program([x], [apply("sin", x)], x)) == "<Program solve(f64[8]) -> f64[8]: 1 operation>"
    )


def test_comments_stand_in_one_column() -> None:
    lines = [line for line in program_text(loop()).splitlines() if "#" in line]
    assert len({line.index("#") for line in lines}) == 1


def test_a_long_line_does_not_push_the_other_comments_out() -> None:
    x = value("f64[]")
    many = [value("f64[]") for _ in range(30)]
    wide = apply("switch", literal(0), *many, regions=[region(many, [], *many)], line=1)
    narrow = apply("sin", x, line=2)
    text = program_text(program([x, *many], [wide, narrow], out(narrow)))
    (comment,) = (line for line in text.splitlines() if "solver.py:2" in line)
    assert comment.index("#") < 80


def test_literals_show_their_dtype_unless_it_is_python_s() -> None:
    atoms = [1, 2.5, True, 1j, np.float32(0.1), np.int8(-1), np.uint64(3), float("inf")]
    text = program_text(program([], [], *map(literal, atoms)))
    assert "return 1, 2.5, True, 1j, 0.1:f32, -1:i8, 3:u64, inf" in text


def test_attributes_are_in_brackets_and_dtypes_short() -> None:
    x = value("f64[2,3]")
    cast = apply("cast", x, dtype=np.dtype(np.float32))
    swap = apply("transpose", out(cast), axes=(1, 0))
    assert program_text(program([x], [cast, swap], out(swap))).splitlines()[1:3] == [
        "  b: f32[2,3] = cast[dtype=f32] a",
        "  c: f32[3,2] = transpose[axes=(1, 0)] b",
    ]


def test_branches_are_named() -> None:
    p, x = value("bool[]"), value("f64[]")
    branches = [region([v := value("f64[]")], [], v) for _ in range(3)]
    chosen = apply("cond", p, x, regions=branches[:2])
    switched = apply("switch", literal(1), x, regions=branches)
    text = program_text(program([p, x], [chosen, switched], out(switched)))
    assert re.findall(r"^ +(\w+)\(", text, re.M) == ["true", "false", "0", "1", "2"]


def test_names_of_many_values() -> None:
    assert [value_name(i) for i in (0, 25, 26, 701, 702)] == ["a", "z", "aa", "zz", "aaa"]


def test_empty_program() -> None:
    assert program_text(program([], [])) == "program solve() {\n  return\n}"


def test_ansi_text_is_the_plain_text_with_colours() -> None:
    coloured = program_text(loop(), ansi=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[\d*m", "", coloured) == program_text(loop())


def test_a_marked_equation_is_pointed_at() -> None:
    p = loop()
    inner = p.body.eqns[1].regions[1].eqns[0]
    (marked,) = (line for line in program_text(p, mark=inner).splitlines() if "<--" in line)
    assert "multiply" in marked
