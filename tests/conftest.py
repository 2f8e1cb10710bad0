"""What all tests share: garbage collection, soak tests, how many examples hypothesis tries, what
runs Plans on the host, and a check of every Plan that is made.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# before NumPy is imported: after each product of matrices, idle threads of OpenBLAS would wait for
# the next one in a loop, on the processors of other workers

import pytest
from hypothesis import HealthCheck, settings

from lowering.host.choice import VARIABLE, why_not_native
from lowering.legalization.legalize import legalize
from lowering.lower import lower
from lowering.plan.plan import Plan
from lowering.plan.reports.races import races
from tracegraph.cache.settings import PROGRAMS_VARIABLE
from tracegraph.testing import assert_no_races

pytest.register_assert_rewrite("tests.cases", "tests.comparisons", "tests.helpers")

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile(
    "ci", max_examples=16, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile("long", max_examples=2500, deadline=None, suppress_health_check=SLOW)
settings.load_profile("ci")


os.environ.setdefault(VARIABLE, "plain")
# interpreted unless the environment says more: machine code of each program takes 25 to 100 ms to
# compile. Tests of native code, and those with `each_host`, choose it themselves.

os.environ.setdefault(PROGRAMS_VARIABLE, "0")
# what tests plan is planned: a Plan of an earlier run would show nothing of what has changed

EACH_HOST = ("plain", "native")


def pytest_configure(config: pytest.Config) -> None:
    """Tests declare features missing on purpose."""
    config.addinivalue_line("filterwarnings", "ignore::tracegraph.errors.FallbackWarning")


@pytest.fixture(params=EACH_HOST)
def each_host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans on the host are interpreted, and in a second run of the test, machine code."""
    if request.param == "native" and why_not_native():
        pytest.skip(why_not_native())
    monkeypatch.setenv(VARIABLE, request.param)


def check_plans_of(function: Callable[..., Any]) -> None:
    """Let a function of any module that makes Plans check each one for races.

    Plans that tests only print or count are checked in this way, too. Test files are imported
    later, and get the function that checks. A Plan made by hand may lack edges: what becomes of
    that is not checked.
    """

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        plan = function(*args, **kwargs)
        is_checked = any(plan is given for given in args)
        if not is_checked and races(plan):
            was_racing = any(isinstance(given, Plan) and races(given) for given in args)
            if not was_racing:
                assert_no_races(plan)
        return plan

    for module in list(sys.modules.values()):
        if getattr(module, function.__name__, None) is function:
            setattr(module, function.__name__, checked)


check_plans_of(lower)
check_plans_of(legalize)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Some tests run only where the marker expression names them: ``-m "gpu or soak"``."""
    asked = [name for name in ("soak", "browser") if name not in config.option.markexpr]
    left = [item for item in items if any(map(item.get_closest_marker, asked))]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, asked))]


def pytest_collection_finish() -> None:
    """Full collections during tests skip what collection made: thousands of items and modules.

    Tests collect garbage often. tests/plan took 386 s without this and 183 s with it. Workers of
    xdist collect their own items, and come here as well.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def frozen_survivors() -> Iterator[None]:
    """They skip what survives the tests of earlier modules, too: caches, interned types.

    Builds that fail at each call, with a collection after each, took 60 s behind 4,000 other tests
    without this and 26 s with it.
    """
    yield
    gc.collect()
    gc.freeze()
