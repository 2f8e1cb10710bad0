"""Functions of networks and their slopes, jitted on the host."""

from tests.comparisons.nn_functions import (  # noqa: F401 - run here
    PROGRAMS,
    test_infinities_and_the_largest_numbers,
    test_slopes_at_kinks,
    test_values_and_slopes_are_those_of_the_formulas,
)
from tests.helpers.devices import jitted_for

device = jitted_for("host")
