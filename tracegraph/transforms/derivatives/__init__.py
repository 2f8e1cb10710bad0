"""Derivatives: forwards and backwards, of regions with loops and branches, to any order.

An op gives its rule in its record.

forward, reverse, linear, jacobians  jvp, linearize; vjp, grad; linear_transpose; hessian
linearize                            a region -> its results, and the linear equations of their
                                     tangents
transpose                            linear equations -> those of cotangents, backwards
activity                             which results of a region depend on which parameters
branches, loops                      both for ops with regions
residuals                            what a body keeps for its derivative, and what is computed
                                     again
reverse_loops                        loops of linear parts backwards
two_level_checkpoints                two-level checkpointing of long scans
custom, checkpoint                   custom_jvp, custom_vjp; checkpoint
custom_rules, user_rules             derivatives of functions with rules, and of users' kernels
implicit                             custom_linear_solve, custom_root
tangents                             those that users give, checked
linear_functions                     pullbacks and linear functions, which are trees
"""
