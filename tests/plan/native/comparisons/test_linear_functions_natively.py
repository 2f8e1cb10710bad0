"""Linear functions, pullbacks and rules at high orders, as native code."""

from tests.comparisons.linear_functions import PROGRAMS, test_programs_give_what_they_give_eagerly  # noqa: F401 - run here
