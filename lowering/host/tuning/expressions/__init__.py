"""Passes on expressions: indices, clips and remainders that NumPy computes in fewer calls."""
