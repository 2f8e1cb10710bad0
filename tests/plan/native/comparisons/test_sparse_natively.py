"""Sparse products and folds by segment, as native code."""

from tests.comparisons.sparse import PROGRAMS, test_products_and_folds_are_those_of_the_host  # noqa: F401 - run here
