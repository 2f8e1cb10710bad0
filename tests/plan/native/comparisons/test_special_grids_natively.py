"""Special functions at poles, halves, infinities and NaN, as native code."""

from tests.comparisons.special_grids import (  # noqa: F401 - run here
    PROGRAMS,
    test_the_incomplete_beta_function_of_large_parameters,
    test_values_at_ends_are_those_of_the_host,
    test_values_on_the_grid_are_scipys,
)
