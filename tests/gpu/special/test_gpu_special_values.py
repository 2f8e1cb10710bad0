"""Elementwise ops of special complex numbers give on the GPU what NumPy gives."""

from tests.comparisons.special_values import (  # noqa: F401 - run here
    PROGRAMS,
    test_special_values_are_those_of_numpy,
)
