"""The intermediate representation: typed programs, ops as records, and the scalar language.

Everything here is data: tracing makes it, passes rewrite it, lowering reads it. A function of this
folder checks, prints or interprets a program, and compiles nothing. May import `errors/`, `dtypes`,
`progress` and `user_source`.

    types                          array types and NumPy's promotion
    program, control_forms         programs; operands of loops and branches by role
    op, combiners, effects         op records and their registry; folds; prints, checks and tokens
    barriers                       equations at which others write to arguments
    scalar, scalar_values          one element as an expression of its index
    subexpressions                 traversal and substitution of such expressions
    stored                         programs as JSON
    verify, interpret, text        the type checker, the reference interpreter, the printer
    custom_kernels, kernel_calls   kernels that users declare; calls of them, which are attributes
    kernel_launches                what such a call launches
    record, interning              cheap frozen dataclasses; one object for equal expressions
"""
