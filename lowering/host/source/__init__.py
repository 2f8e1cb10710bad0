"""Source: a plan as the text of one Python function.

A text is compiled once, and run by each call.

plan_function, control_flow  the plan, and its graphs
call_emitter, array_names    its nests, and names
python_source                the text while it is written
print_nests                  print and call nests
"""
