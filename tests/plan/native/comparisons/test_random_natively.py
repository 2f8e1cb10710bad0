"""Random numbers, drawn by native code."""

from tests.comparisons.random import (  # noqa: F401 - run here
    PROGRAMS,
    test_bits_are_those_of_the_host,
    test_numbers_are_those_of_the_host_but_for_rounding,
)
