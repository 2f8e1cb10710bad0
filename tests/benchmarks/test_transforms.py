"""The derivatives and batches of the benchmarks: what differences and loops over lanes give."""

import dataclasses

import numpy as np
import pytest

from benchmarks.harness import command
from benchmarks.harness.library import leaves
from benchmarks.harness.measure import Contestant
from benchmarks.harness.outcome import Outcome
from benchmarks.harness.report import gradients as gradients_report
from benchmarks.harness.row import Draw
from benchmarks.programs import gradients, lanes, loop_gradients
from benchmarks.programs.language import eager, traced
from benchmarks.programs.transforms import TRANSFORMS
from benchmarks.rows import GROUPS, ROWS

BY_NAME = {program.name: program for program in TRANSFORMS}
ARGNUMS = {"network": gradients.PARAMETERS}
SIZE = 7


def inputs_of(name, dtype="float64"):
    program = BY_NAME[name]
    draw = Draw.of(program.derivative_of or name, 0, "host", "fixed")
    return program.inputs(draw, SIZE, np.dtype(dtype))


def results(name, inputs, monkeypatch):
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "host")
    return list(map(np.asarray, leaves(BY_NAME[name].contestants()["tracegraph"](*inputs)())))


def difference(function, inputs, argnums, directions, step=1e-6):
    """The derivative of a function in a direction, by two values beside it."""

    def beside(sign):
        given = list(inputs)
        for i, direction in zip(argnums, directions, strict=True):
            given[i] = given[i] + sign * step * direction
        return function(*given)

    above, below = (np.concatenate([np.ravel(x) for x in leaves(beside(s))]) for s in (1, -1))
    return (above - below) / (2 * step)


@pytest.mark.parametrize("name", [p.name for p in TRANSFORMS if p.derivative_of])
def test_gradients_are_those_of_the_functions_beside_them(name, monkeypatch):
    program = BY_NAME[name]
    inputs = inputs_of(name)
    function = BY_NAME[program.derivative_of].write(eager(np))
    value, *found = results(name, inputs, monkeypatch)
    np.testing.assert_allclose(value, function(*inputs), 1e-10)
    argnums = ARGNUMS.get(program.derivative_of, (0,))
    directions = [np.random.default_rng(i).standard_normal(x.shape) for i, x in enumerate(found)]
    slope = sum((x * direction).sum() for x, direction in zip(found, directions, strict=True))
    # The steps of an adaptive method change with its start: differences err as the method does.
    tolerance = 1e-5 if program.derivative_of == "integration" else 1e-6
    expected = difference(function, inputs, argnums, directions)
    np.testing.assert_allclose(slope, expected[0], tolerance, tolerance)


def test_the_product_with_the_hessian_is_the_derivative_of_the_gradient(monkeypatch):
    inputs = inputs_of("hessian_product")
    gradient = BY_NAME["network_gradient"].write(traced())
    argnums = gradients.PARAMETERS
    given, directions = inputs[:8], inputs[8:]
    found = results("hessian_product", inputs, monkeypatch)
    expected = difference(lambda *x: gradient(*x)[1], given, argnums, directions)
    np.testing.assert_allclose(np.concatenate(list(map(np.ravel, found))), expected, 1e-6, 1e-7)


@pytest.mark.parametrize(
    ("name", "function", "in_axes"),
    [
        ("regressions", lanes.fit(traced()), (0, 0, 0)),
        ("integrations", lanes.integrate(eager(np)), (1, None, None)),
    ],
)
def test_lanes_are_computed_as_one_by_one(name, function, in_axes, monkeypatch):
    inputs = inputs_of(name)
    each = [
        list(
            leaves(
                function(
                    *(
                        x if axis is None else np.take(x, i, axis)
                        for x, axis in zip(inputs, in_axes, strict=True)
                    )
                )
            )
        )
        for i in range(SIZE)
    ]
    found = results(name, inputs, monkeypatch)
    for x, parts in zip(found, zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(x, np.stack(parts), 1e-9)


@pytest.mark.parametrize("name", BY_NAME)
def test_float32_stays_float32(name, monkeypatch):
    found = results(name, inputs_of(name, "float32"), monkeypatch)
    assert all(np.isfinite(x).all() for x in found)
    assert {x.dtype.name for x in found if x.dtype.kind == "f"} == {"float32"}


def test_loops_end_before_their_bound(monkeypatch):
    inputs = inputs_of("integrations")
    *_, steps = results("integrations", inputs, monkeypatch)
    assert 1 < steps.min() < steps.max() < loop_gradients.MOST_STEPS


def test_the_group_has_every_program_and_the_tracing_of_gradients():
    chosen = command._parser().parse_args(["--rows", "transforms"]).rows
    names = {row.name for row in chosen}
    assert names == {row.name for row in GROUPS["transforms"]}
    assert {f"trace_gradient_{n}" for n in (10, 100, 1_000, 10_000)} < names
    for row in chosen:
        assert row.derivative_of is None or row.derivative_of in ROWS
        assert set(row.contestants) == {"tracegraph", "jax"}


def test_a_gradient_has_the_inputs_of_its_function():
    function, gradient = ROWS["bodies_64_f64"], ROWS["bodies_gradient_64_f64"]
    assert gradient.derivative_of == function.name
    assert ROWS["bodies_1024_f32"].derivative_of is None
    smaller = dataclasses.replace(BY_NAME["bodies_gradient"], sizes=(3,))
    assert [row.derivative_of for row in smaller.rows()] == ["bodies_3_f32", "bodies_3_f64"]


def test_the_report_compares_gradients_with_their_functions():
    def outcome(name, milliseconds):
        each = [
            Contestant(label, bool, bool, 1, samples=[time / 1e3])
            for label, time in milliseconds.items()
        ]
        return Outcome.of(ROWS[name], [], each, [], {}, [])

    function = outcome("newton_1000_f64", {"tracegraph": 2, "jax": 1})
    gradient = outcome("newton_gradient_1000_f64", {"tracegraph": 5, "jax": 8})
    lines = gradients_report([function, gradient]).splitlines()
    assert [line.split()[1:] for line in lines[1:]] == [
        ["tracegraph", "2", "5", "2.5"],
        ["jax", "1", "8", "8"],
    ]
    assert gradients_report([gradient]) == gradients_report([]) == ""
