"""Recipes: CUDA graphs as data, which are built again without planning or compiling.

recipe      what a recipe is: records of relocations, nodes and code
recording   Plan -> recipe, by emission; recorder: what notes each call of it
calls       calls of libraries as JSON
stored      recipes as JSON; checks: what they name is there
replay      recipe -> graph, through the driver; libraries, reports: what it calls and reports
executable  a recipe that runs; misfit: why it does not, here
targets     what files have of all this
"""
