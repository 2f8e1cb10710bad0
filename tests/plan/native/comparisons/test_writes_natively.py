"""Writes at fixed indices that are one map, as native code."""

from tests.comparisons.writes import PROGRAMS, test_kernels_write_what_numpy_writes  # noqa: F401 - run here
