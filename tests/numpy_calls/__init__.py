"""The calls of NumPy's own tests, replayed under jit: ``python -m tests.numpy_calls``."""
