"""Elementwise ops of special complex numbers, as native code."""

from tests.comparisons.special_values import PROGRAMS, test_special_values_are_those_of_numpy  # noqa: F401 - run here
