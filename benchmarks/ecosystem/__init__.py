"""How well arrays go through other libraries: counts, run by hand, that need these installed.

python -m benchmarks.ecosystem.scipy_calls       104 calls of SciPy, eager and jitted
python -m benchmarks.ecosystem.sklearn_calls     22 estimators and metrics of scikit-learn
python -m benchmarks.ecosystem.scipy_suite       SciPy's own tests, with Arrays
"""
