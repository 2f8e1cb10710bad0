"""Windows that are written, as generated CUDA C++ that runs on the CPU."""

from tests.comparisons.windows import PROGRAMS, test_windows_are_those_that_numpy_writes  # noqa: F401 - run here
