"""Kernels that sort rows; what they call is in `device/sorting.cuh`."""
