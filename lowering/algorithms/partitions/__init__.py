"""Tridiagonal systems by partitions, as kernels.

partition              how blocks of threads divide systems
partition_kernels      the kernels, and the program that calls them
partition_references   what they compute, with NumPy
tridiagonal_systems    their code, and the method
"""
