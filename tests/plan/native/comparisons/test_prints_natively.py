"""Prints from native code."""

from tests.comparisons.prints import PROGRAMS, test_prints_are_those_of_the_eager_run  # noqa: F401 - run here
