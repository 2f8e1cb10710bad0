"""Matrices of up to 128 rows, by kernels.

small            which kernel factors which matrices, and programs of several kernels
block_kernels    kernels with one block of threads for each matrix; block_columns, block_factors and
                 block_rotations have their code
lane_kernels     kernels with some lanes for each matrix; lane_matrices has their code
matrix_kernels   how both are declared
"""
