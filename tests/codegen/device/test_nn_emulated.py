"""Functions of networks and their slopes, as generated CUDA C++ that runs on the CPU."""

from tests.comparisons.nn_functions import (  # noqa: F401 - run here
    PROGRAMS,
    test_infinities_and_the_largest_numbers,
    test_slopes_at_kinks,
    test_values_and_slopes_are_those_of_the_formulas,
)
