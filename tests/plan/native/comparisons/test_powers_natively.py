"""Powers with known exponents, as native code."""

from tests.comparisons.powers import (  # noqa: F401 - run here
    PROGRAMS,
    test_powers_are_within_two_ulps,
)
