"""Callbacks, as native code."""

from tests.comparisons.callbacks import PROGRAMS, test_calls_and_answers_are_those_of_the_eager_run  # noqa: F401 - run here
