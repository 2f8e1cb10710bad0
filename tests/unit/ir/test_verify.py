from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.programs.by_hand import apply, literal, out, program, region, value
from tracegraph.errors import VerificationError
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Literal, Program, Value
from tracegraph.ir.types import ArrayType
from tracegraph.ir.verify import verify


def equation(name: str, operands: tuple[Value | Literal, ...], result: str, **attrs: object) -> Eqn:
    """An equation that claims a result type, whatever the op says."""
    regions = attrs.pop("regions", ())
    return Eqn(get(name), operands, (value(result),), attrs, regions)  # type: ignore[arg-type]


def branch(param: str = "f64[]", *, twice: bool = False) -> object:
    v = value(param)
    return region([v], [], *([v, v] if twice else [v]))


def use_before_definition() -> Program:
    x = value("f64[]")
    first, second = apply("sin", x), apply("cos", x)
    early = replace(first, operands=(out(second),))
    return program([x], [early, second], out(first))


def second_definition() -> Program:
    x = value("f64[]")
    eqn = apply("sin", x)
    return program([x], [eqn, eqn], out(eqn))


def open_region() -> Program:
    p, x = value("bool[]"), value("f64[]")
    inner = [region([value("f64[]")], [], x) for _ in range(2)]
    chosen = apply("cond", p, x, regions=inner)
    return program([p, x], [chosen], out(chosen))


def wrong_type_inside_a_branch() -> Program:
    p, x, v, w = value("bool[]"), value("f64[]"), value("f64[]"), value("f64[]")
    wrong = equation("sin", (v,), "f32[]")
    inner = [region([v], [wrong], v), region([w], [], w)]
    chosen = apply("cond", p, x, regions=inner)
    return program([p, x], [chosen], out(chosen))


def of(eqn: Eqn, *params: Value) -> Program:
    return program(params, [eqn], *eqn.outputs)


X, P = value("f64[]"), value("bool[]")
WHOLE = value("f64[3]")

WRONG: dict[str, tuple[Program, list[str]]] = {
    "use before definition": (use_before_definition(), ["operand 0", "not defined", "<-- here"]),
    "second definition": (second_definition(), ["output 0", "second time"]),
    "parameter twice": (program([X, X], [], X), ["parameter 1", "second time"]),
    "open region": (open_region(), ["result 0 is not defined", "cond p|cond a b", "<-- here"]),
    "type": (of(equation("sin", (X,), "f64[3]"), X), ["yields (f64[])", "recorded are (f64[3])"]),
    "type inside": (wrong_type_inside_a_branch(), ["recorded are (f32[])", "= sin d  <-- here"]),
    "weakness": (of(equation("negative", (X,), "~f64[]"), X), ["(f64[])", "(~f64[])"]),
    "literal": (
        of(equation("sin", (Literal(np.float32(1), ArrayType("float64")),), "f64[]")),
        ["literal float32 of type f64[]"],
    ),
    "python literal": (
        program([], [], Literal(1.0, ArrayType("float64"))),
        ["result 0", "NumPy scalar"],
    ),
    "constant": (
        program([WHOLE], [], WHOLE, constants=[np.zeros(2)]),
        ["constant 0", "float64[2]", "f64[3]"],
    ),
    "too many constants": (program([], [], constants=[np.zeros(2)]), ["no parameter"]),
    "one branch": (
        of(equation("cond", (P, X), "f64[]", regions=(branch(),)), P, X),
        ["cond: needs 2 regions, not 1"],
    ),
    "predicate": (
        of(equation("cond", (X, X), "f64[]", regions=(branch(), branch())), X),
        ["predicate must be (bool[]), not (f64[])"],
    ),
    "branch parameters": (
        of(equation("cond", (P, X), "f64[]", regions=(branch(), branch("f64[2]"))), P, X),
        ["parameters of branch 1 must be (f64[]), not (f64[2])"],
    ),
    "branch results": (
        of(equation("cond", (P, X), "f64[]", regions=(branch(), branch(twice=True))), P, X),
        ["results of branch 1 must be (f64[]), not (f64[], f64[])"],
    ),
    "no branches": (of(equation("switch", (literal(0),), "f64[]")), ["at least one region"]),
    "switch index": (
        of(equation("switch", (P, X), "f64[]", regions=(branch(),)), P, X),
        ["index must be i32[] or i64[], not bool[]"],
    ),
    "condition": (
        of(equation("while_loop", (X,), "f64[]", regions=(branch(), branch()), carry=1), X),
        ["result of the condition must be (bool[]), not (f64[])"],
    ),
    "scan extent": (
        of(
            equation(
                "scan",
                (WHOLE,),
                "f64[3]",
                regions=(branch(),),
                carry=0,
                xs=1,
                length=2,
                reverse=False,
            ),
            WHOLE,
        ),
        ["leading extent 2", "f64[3]"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_program_that_is_not_well_formed_is_an_error(case: str) -> None:
    wrong, facts = WRONG[case]
    with pytest.raises(VerificationError) as error:
        verify(wrong)
    for fact in (*facts, "program solve("):
        assert any(choice in str(error.value) for choice in fact.split("|")), (fact, error.value)


def test_a_well_formed_program_is_returned() -> None:
    eqn = apply("sin", X)
    right = program([X], [eqn], out(eqn))
    assert verify(right) is right
