"""Reports: Plans for people, and a check of them. Nothing in `lowering.plan` imports these.

Plans and nodes find their printers in a table.

text, diagram, graphviz    a Plan as text, picture and DOT
explain                    what was planned, and why
rooflines                  the work of nodes, and the least time for it
node_times, profile        times that were measured
trace_events, profile_plot profiles for Perfetto and matplotlib
views                      the table by which plans and nodes print and draw themselves
races                      what no edge orders, though it shares memory
"""
