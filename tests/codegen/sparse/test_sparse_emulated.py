"""Sparse products and folds by segment, as generated CUDA C++ that runs on the CPU."""

from tests.comparisons.sparse import (  # noqa: F401 - run here
    PROGRAMS,
    test_products_and_folds_are_those_of_the_host,
)
