"""Expansion: Program -> Program, before regions become blocks. No other part is imported.

Results are the same; ops become those that planning has rules for.

desugar              the few control forms that a graph has
contractions         thin matrix products as sums of products
shared_factors       factors that a batch of products shares
fixed_updates        updates at fixed places that combine, as reads and writes
grouped_updates      updates that need an order, sorted by element; scatter_order says which do
unroll_short_loops   loops of few steps, written out
merged_folds         folds of folds as one
top_level            ops that bodies must not have
equation_costs       the scalar work of an equation
"""
