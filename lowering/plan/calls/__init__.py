"""Calls of libraries as data: one record for each kind of call. May import `plan.nests`.

No file here knows a node or a device.

library_call     what all share: operands in memory, buffers read and written
matrix_product   products, and what the library can multiply
fourier, factorization, lapack    transforms; factorizations
captured_call    calls that users capture
"""
