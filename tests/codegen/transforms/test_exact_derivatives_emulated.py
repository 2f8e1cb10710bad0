"""Derivatives at singular points, as generated CUDA C++ that runs on the CPU."""

from tests.comparisons.exact_derivatives import PROGRAMS, test_derivatives_are_those_of_the_host  # noqa: F401 - run here
