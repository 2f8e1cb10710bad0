"""Stacks of several sources, as native code."""

from tests.comparisons.stacks import PROGRAMS, test_stacks_are_numpys  # noqa: F401 - run here
