"""For tests, of users too: random programs, and an assertion that traced code is as eager.

Needs hypothesis, which the extra ``tracegraph[test]`` brings.
"""

from tracegraph.testing.agreement import assert_traced_equals_eager
from tracegraph.testing.programs import RandomProgram, programs

__all__ = ["RandomProgram", "assert_traced_equals_eager", "programs"]
