"""Execution of a Plan on the CPU with NumPy."""
