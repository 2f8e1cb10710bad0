"""Stacks of several sources, as generated CUDA C++ that runs on the CPU."""

from tests.comparisons.stacks import PROGRAMS, test_stacks_are_numpys  # noqa: F401 - run here

WAYS = ("as_estimated", "unrolled", "one_kernel", "grid")
