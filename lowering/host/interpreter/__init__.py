"""The interpreter: a plan as calls of NumPy, each nest over its whole space.

One way to evaluate each nest, with each value in a temporary of its own.

interpreter, steps, frame          a plan as functions without arguments, on a place for each array
programs, nest_program, hazards    the instructions of kernels; places of temporaries
nests, print_nests, reports        kinds of nests, prints and signals as instructions
evaluate, axis_dependence          scalar expressions as instructions
access_maps, load_forms            loads and stores as views or gathers
strided_views, dynamic_offsets     the windows of access maps; offsets that data decides
instructions, numpy_calls          the data, and the calls that it names
"""
