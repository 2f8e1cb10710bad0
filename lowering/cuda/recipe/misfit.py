"""Misfits: why a recipe is not for a device, its driver, or what is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, get_args

from lowering.cuda.compilation.compile import object_code
from lowering.cuda.open_devices import OpenDevice
from lowering.cuda.recipe.recipe import Recipe
from lowering.plan.target.features import Feature, declared

_SCHEDULES = "TRACEGRAPH_SCHEDULES"
"""Schedules that planning is to choose, as `lowering.plan.target.overrides` reads them."""


class MisfitError(Exception):
    """A recipe cannot be used here: the program is lowered instead."""


def require_fitting(recipe: Recipe, device: OpenDevice, data: Callable[[str], bytes]) -> None:
    """Check that a device, and its driver, can run a recipe.

    Raises:
        MisfitError: one of them cannot.
    """

    def probes() -> Any:
        return object_code(data(recipe.codes[recipe.probe]))

    driver = device.driver
    if driver.arch != recipe.arch:
        raise MisfitError(f"it is for {recipe.arch}, and {device.name} is {driver.arch}")
    if driver.cuda_version[0] < recipe.cuda[0]:
        wanted, here = (".".join(map(str, v)) for v in (recipe.cuda, driver.cuda_version))
        raise MisfitError(f"its code was compiled by CUDA {wanted}, and the driver is of {here}")

    if os.environ.get(_SCHEDULES):
        raise MisfitError(f"{_SCHEDULES} asks for schedules, which it has as they were")
    missing = [name for name, there in declared().items() if not there and name in recipe.needs]
    if missing:
        raise MisfitError(f"it needs {', '.join(missing)}, which TRACEGRAPH_FEATURES rules out")
    for feature in get_args(Feature):
        if feature in recipe.needs and not device.supports(feature, probes):
            raise MisfitError(f"it needs {feature}, which {device.name} lacks")
