"""Targets of files: recipes as documents, made of Plans and made into executables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from lowering.cuda.libraries.loading import load_early
from lowering.cuda.recipe.recipe import Recipe, RecipeKernel
from lowering.cuda.recipe.stored import recipe_from_json, recipe_to_json
from tracegraph.errors import ExportFormatError, ExportVersionError, MalformedTargetError
from tracegraph.staging.interfaces import Executable
from tracegraph.staging.program_function import StoredTarget

if TYPE_CHECKING:
    from lowering.cuda.open_devices import OpenDevice
    from lowering.plan.plan import Plan


def target_of(plan: Plan, arch: str) -> StoredTarget:
    """As `Compiler.target_of`."""
    from lowering.cuda.recipe.recording import recorded

    found = recorded(plan, arch)
    return StoredTarget(recipe_to_json(found.recipe), found.data)


def recipe_of(target: StoredTarget) -> Recipe:
    """The recipe of a target.

    Raises:
        MalformedTargetError: it is none, or what it names is missing.
        ExportVersionError: it is of another format.
    """
    recipe = recipe_from_json(target.recipe)
    for name in recipe.codes:
        if name not in target.data:
            raise MalformedTargetError(f"there is no code {name}")
    for constant in recipe.constants:
        if len(target.data.get(constant.data, b"")) != constant.nbytes:
            raise MalformedTargetError(f"the constant {constant.data} has another size")
    return recipe


def target_sizes(target: StoredTarget) -> Mapping[str, int]:
    """As `Compiler.target_sizes`."""
    recipe = recipe_of(target)
    return {
        "kernels": sum(isinstance(node, RecipeKernel) for node in recipe.nodes),
        "nodes": len(recipe.nodes),
        "bytes": sum(len(target.data[name]) for name in recipe.codes),
    }


def read_early(targets: Mapping[str, StoredTarget]) -> Mapping[str, Recipe]:
    """What can be done before the device is open: if there is one target, its recipe is read, and
    the libraries that it calls begin to be loaded. By architecture.
    """
    found: dict[str, Recipe] = {}
    if len(targets) == 1:
        with suppress(ExportFormatError):  # it is raised once the target is to run
            found = {arch: recipe_of(target) for arch, target in targets.items()}
    load_early(call.kind for recipe in found.values() for call in recipe.calls)
    return found


def load_target(
    targets: Mapping[str, StoredTarget],
    device: OpenDevice,
    planned: Callable[[], Any],
    read: Mapping[str, Recipe] | None = None,
) -> Executable | str:
    """As `Compiler.load_target`, for an open device; `read` has what `read_early` gave."""
    from lowering.cuda.recipe.misfit import MisfitError

    arch = device.driver.arch
    target = targets.get(arch)
    if target is None:
        return f"the file has code for {', '.join(sorted(targets))}, and {device.name} is {arch}"
    try:
        recipe = (read or {}).get(arch) or recipe_of(target)
        load_early(call.kind for call in recipe.calls)
        from lowering.cuda.recipe.executable import RecipeExecutable

        make = partial(RecipeExecutable, recipe, target.data.__getitem__, device, planned)
        return make()
    except (MisfitError, ExportVersionError) as misfit:
        return str(misfit)
