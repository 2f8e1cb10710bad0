"""Special functions of float64 arrays, vectorised with NumPy: what the records have as references.

Each file has the functions of one family and says how far they are from the exact value. Where
SciPy can be imported, its compiled functions take their place (`scipy_if_there`).
"""
