"""Evaluation: nests as NumPy calls over whole spaces.

This is the plain interpreter, with each value in a temporary of its own.

nests, nest_program, hazards       kinds of nests as instructions; places of their temporaries
evaluate, axis_dependence          scalar expressions as calls
access_maps, load_forms            loads and stores as views or gathers
strided_views, dynamic_offsets     the windows of access maps; offsets that data decides
instructions, numpy_calls          the data, and the calls that it names
numpy_workarounds                  where NumPy's loops are wrong
"""
