"""Stacks of several sources on the GPU: each thread computes an element of every source."""

from tests.comparisons.stacks import PROGRAMS, test_stacks_are_numpys  # noqa: F401 - run here
