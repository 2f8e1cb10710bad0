"""Deterministic blocks: what is recorded in them, and which programs calls use."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import tracegraph
from tests.helpers.traced import trace
from tracegraph.modes import is_deterministic
from tracegraph.passes import optimize

BINS = np.array([0, 1, 1, 3])
WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])


def totals(bins, weights):
    result = np.zeros_like(weights, shape=4)
    np.add.at(result, bins, weights)
    return result


def orders(program):
    scatters = [eqn for eqn in program.body.eqns if eqn.op.name == "scatter_add"]
    assert scatters
    return [eqn.hints.in_order for eqn in scatters]


def test_updates_that_are_traced_inside_are_in_order() -> None:
    assert orders(trace(totals, BINS, WEIGHTS)) == [None]
    with tracegraph.deterministic():
        program = trace(totals, BINS, WEIGHTS)
    assert orders(program) == orders(optimize(program)) == [True]
    assert "in_order=True" in str(program)


def test_a_block_inside_a_function_is_of_what_it_traces() -> None:
    def both(bins, weights):
        with tracegraph.deterministic():
            first = totals(bins, weights)
        return first, totals(bins, weights)

    program = trace(both, BINS, WEIGHTS)
    assert orders(program) == orders(optimize(program)) == [True, None]


def test_updates_that_replace_are_recorded_as_outside() -> None:
    with tracegraph.deterministic():
        program = trace(lambda x, i: x.at[i].set(2.0), WEIGHTS, BINS)
    assert "in_order" not in str(program)


def test_blocks_end_with_an_error_and_may_be_nested() -> None:
    with tracegraph.deterministic():
        with pytest.raises(ZeroDivisionError), tracegraph.deterministic():
            1 / 0  # noqa: B018 - the error is wanted
        assert is_deterministic()
    assert not is_deterministic()


def test_a_block_is_of_its_own_context() -> None:
    async def inside() -> bool:
        with tracegraph.deterministic():
            await asyncio.sleep(0)
            return is_deterministic()

    async def outside() -> bool:
        await asyncio.sleep(0)
        return is_deterministic()

    async def main() -> list[bool]:
        return await asyncio.gather(inside(), outside())

    assert asyncio.run(main()) == [True, False]


def test_programs_of_calls_inside_and_outside_are_two() -> None:
    found = []

    @tracegraph.jit(device="host")
    def noted(bins, weights):
        found.append(is_deterministic())
        return totals(bins, weights)

    for _ in range(2):  # the second time, both programs are there
        for inside in (False, True, False):
            if inside:
                with tracegraph.deterministic():
                    result = noted(BINS, WEIGHTS)
                    assert noted.launch(BINS, WEIGHTS).tolist() == result.tolist()
            else:
                result = noted(BINS, WEIGHTS)
            assert result.tolist() == [1.0, 5.0, 0.0, 4.0]
    assert found == [False, True]
    stats = noted.stats()
    assert (stats["traces"], stats["launches"]) == (2, 8)
    assert stats["retraces"] == ("deterministic: False -> True",)


def test_what_was_first_called_inside_is_not_used_outside() -> None:
    jitted = tracegraph.jit(totals, device="host")
    with tracegraph.deterministic():
        jitted(BINS, WEIGHTS)
    jitted(BINS, WEIGHTS)
    assert jitted.stats()["retraces"] == ("deterministic: True -> False",)


def test_stages_made_inside_stay_deterministic_outside() -> None:
    with tracegraph.deterministic():
        traced = tracegraph.jit(totals, device="cuda").trace(BINS, WEIGHTS)
    assert "1 axes in order" in str(traced.lower())
