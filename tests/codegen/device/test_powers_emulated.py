"""Powers with known exponents, as generated CUDA C++ run on the CPU."""

from tests.comparisons.powers import (  # noqa: F401 - run here
    PROGRAMS,
    test_powers_are_within_two_ulps,
)
