"""Writes at fixed indices that are one kernel, on a GPU."""

from tests.comparisons.writes import PROGRAMS, test_kernels_write_what_numpy_writes  # noqa: F401 - run here
