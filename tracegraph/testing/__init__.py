"""Testing: an assertion that traced code equals eager code, and strategies for hypothesis.

Users may use it in their own tests. `arrays`, `scalars` and `programs` need hypothesis, which the
extra ``tracegraph[testing]`` installs. May import the public package, and lowering. Nothing imports
it.

    agreement, hints                       the assertion, and what may explain that it fails
    trials, ways                           a call, and the ways of running it
    outcomes, differences, ulps            what runs do, and how it differs
    races                                  the assertion that nodes side by side share no memory
    custom_kernels                         the assertion of users' kernels and their references
    strategies, array_texts                arrays and scalars, and the texts that describe them
    random_programs, blocks, random_steps  random programs: their blocks, and the steps in these
    operation_chains                       what runs beside the loops and branches of random
                                           programs
    special                                steps with constants that are NaN, infinite or complex
    values                                 random values and expressions in random programs
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from tracegraph.public_names import set_all as _set_all
from tracegraph.testing.agreement import assert_traced_equals_eager as assert_traced_equals_eager
from tracegraph.testing.custom_kernels import check_kernel as check_kernel
from tracegraph.testing.races import assert_no_races as assert_no_races

if TYPE_CHECKING:
    from tracegraph.testing.random_programs import RandomProgram as RandomProgram
    from tracegraph.testing.random_programs import programs as programs
    from tracegraph.testing.strategies import arrays as arrays
    from tracegraph.testing.strategies import scalars as scalars

_OF_HYPOTHESIS = {
    "RandomProgram": "tracegraph.testing.random_programs",
    "arrays": "tracegraph.testing.strategies",
    "programs": "tracegraph.testing.random_programs",
    "scalars": "tracegraph.testing.strategies",
}
"""Names whose modules need hypothesis. They are imported when first used."""

_all = _set_all(__name__, *_OF_HYPOTHESIS)


def __dir__() -> list[str]:
    return _all


def __getattr__(name: str) -> _Any:
    if name not in _OF_HYPOTHESIS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = _import_module(_OF_HYPOTHESIS[name])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "hypothesis":
            raise
        raise ImportError(
            f"tracegraph.testing.{name} needs hypothesis, which is not installed: "
            "pip install 'tracegraph[testing]'"
        ) from error
    found = globals()[name] = getattr(module, name)
    return found
