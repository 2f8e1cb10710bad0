"""Recipes: CUDA graphs as data, which are built again without planning or compiling.

recipe     what a recipe is: records of places, nodes and code
"""
