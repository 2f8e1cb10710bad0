"""Derivatives at singular points, as native code."""

from tests.comparisons.exact_derivatives import PROGRAMS, test_derivatives_are_those_of_the_host  # noqa: F401 - run here
