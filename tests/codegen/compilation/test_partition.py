"""Which functions are compiled together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lowering.codegen.units import SMALL_UNIT, partition

LENGTHS = st.lists(st.integers(1, 4 * SMALL_UNIT), max_size=20)


def functions_of(lengths: list[int]) -> dict[str, str]:
    return {f"f{i}": "x" * length for i, length in enumerate(lengths)}


@given(LENGTHS, st.integers(1, 16))
def test_every_function_is_in_one_unit(lengths: list[int], workers: int) -> None:
    functions = functions_of(lengths)
    units = partition(functions, workers)
    assert sorted(name for unit in units for name in unit) == sorted(functions)
    assert all(units)
    assert all(functions[name] == text for unit in units for name, text in unit.items())


@given(LENGTHS, st.integers(1, 16))
def test_units_are_few_and_even(lengths: list[int], workers: int) -> None:
    units = partition(functions_of(lengths), workers)
    assert len(units) <= 2 * workers  # first fit: two units are never both less than half full
    most = max([SMALL_UNIT, *lengths, -(-sum(lengths) // workers)])
    assert all(sum(map(len, unit.values())) <= most for unit in units)


def test_small_plans_are_one_unit() -> None:
    assert len(partition(functions_of([500] * 6), 16)) == 1
    assert len(partition(functions_of([5000] * 4), 1)) == 1
