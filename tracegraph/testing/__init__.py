"""Testing: random programs for hypothesis, and an assertion that traced code equals eager code.

For the tests of users, too. Seeds come in, functions with control flow and their arguments go out.
Needs hypothesis, which the extra ``tracegraph[test]`` installs. May import the public package.

    agreement                      the assertion
    trials, ways                   a call, and the ways of running it
    outcomes, differences, ulps    what runs do, and how it differs
    kernels                        the same of users' kernels and their references
    programs, blocks, steps        random programs: their blocks, and the steps in these
    special                        steps with constants that are NaN, infinite or complex
    values                         random arrays and expressions
"""

from tracegraph.testing.agreement import assert_traced_equals_eager
from tracegraph.testing.kernels import check_kernel
from tracegraph.testing.programs import RandomProgram, programs

__all__ = ["RandomProgram", "assert_traced_equals_eager", "check_kernel", "programs"]
