"""Derivatives of kernels and functions of users, as native code."""

from tests.comparisons.custom_derivatives import PROGRAMS, test_values_gradients_and_tangents  # noqa: F401 - run here
