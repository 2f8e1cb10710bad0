"""Windows that are written, as native code."""

from tests.comparisons.windows import PROGRAMS, test_windows_are_those_that_numpy_writes  # noqa: F401 - run here
