"""Flat files: recipes as records of fixed size, which C reads where they are.

layout             what a file holds: the fields of each record
flat_file          a recipe with its cubins and constants -> a file
c_declarations     the same layout for C
tracegraph_load.h  the C loader, one header
"""
