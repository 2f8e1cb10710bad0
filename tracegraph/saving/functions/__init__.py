"""Functions and kernels of users in files: their texts, and their Python as programs.

    records     what a file holds of a kernel, an elementwise function, a fold
    portable    Program -> Program in which these stand for the user's, whose Python is traced
    calls       programs called as the functions that they were traced from
    rebuilt     records -> ops and kernels
    writing     records as JSON
    reading     JSON -> records, checked

A record is for the types that its function was called with. It holds text of CUDA C++, which is
code: files with one are loaded only if they are trusted.
"""
