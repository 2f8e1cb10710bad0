"""Windows that are written, on a GPU."""

from tests.comparisons.windows import PROGRAMS, test_windows_are_those_that_numpy_writes  # noqa: F401 - run here
