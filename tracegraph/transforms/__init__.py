"""Transforms: functions of functions, as passes over closed regions.

A transform traces a function into a region and records the transformed equations into the trace
around it. May import `control/` and what that imports, and `passes/`, but neither `numpy/` nor
`staging/`.

    vmap              one function applied to many lanes: arguments, axes, results
    batch             the pass: each equation for all lanes
    lanes             the lanes of a batched region, and the mask of those that are live
    batched_flags     which values differ between lanes
    batched_loops     while_loop and scan; lanes stop one by one
    batched_branches  cond and switch; a choice for each lane
    batched_calls     functions that bring rules for their derivatives
    batched_effects   prints, checks and progress of each lane
    emit              records equations of rules
    activity          which results of a region depend on which parameters
    linearize         a region -> its results, and the linear equations of their tangents
    transpose         linear equations -> those of cotangents, backwards
    branches, loops   both for ops with regions
    body_trace        their traces, which capture nothing
    bodies            their regions: with tangents, or taken apart into function and linear part
    residuals         what a body keeps for its derivative, and what is computed again
    reverse_loops     loops of linear parts backwards
    segments          two-level checkpointing of long scans
    functions         functions with rules: their arguments, and the regions of one equation
    custom, checkpoint  custom_jvp, custom_vjp; checkpoint
    custom_rules      the derivatives of functions with rules
    user_rules        derivatives that users give their kernels and reductions
    implicit          custom_linear_solve, custom_root
    calls             functions over trees -> regions; results
    tidy              passes on what transforms read and record
    evaluate          runs a program equation by equation, without compiling it
    tangents          those that users give, checked
    linear_functions  pullbacks and linear functions, which are trees
    forward           jvp, linearize
    reverse           vjp, grad, value_and_grad
    linear            linear_transpose
    jacobians         jacfwd, jacrev, hessian
"""
