"""Function transforms: derivatives as passes over regions.

A transform traces a function into a closed region, and records the equations that it derives from
the region's in the trace around it. May import `control/` and what that may import, and `passes/`
when first used.

    emit             records equations of rules
    activity         which results of a region depend on which parameters
    linearize        a region -> its results, and the linear equations of their tangents
    transpose        linear equations -> those of cotangents, backwards
    branches, loops  both for ops with regions
    bodies           their regions: with tangents, or taken apart into function and linear part
    residuals        what a body keeps for its derivative, and what is computed again
    reverse_loops    loops of linear parts backwards
    segments         two-level checkpointing of long scans
    functions        functions with rules: their arguments, and the regions of one equation
    custom, checkpoint, implicit   custom_jvp, custom_vjp; checkpoint; custom_linear_solve, _root
    calls            functions over trees -> regions; results
    tidy             passes on what transforms read and record
    evaluate         runs a program equation by equation, without compiling it
    forward          jvp, linearize
    reverse          vjp, grad, value_and_grad
    linear           linear_transpose
    jacobians        jacfwd, jacrev, hessian
"""
