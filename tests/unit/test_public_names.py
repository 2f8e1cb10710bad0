"""The face of the package: what `dir` and completion show."""

from __future__ import annotations

import tracegraph


def test_dir_shows_the_public_names_only() -> None:
    assert dir(tracegraph) == sorted(tracegraph.__all__)
    assert not {"ir", "staging", "arrays", "annotations"} & set(dir(tracegraph))


def test_every_public_name_is_there() -> None:
    for name in tracegraph.__all__:
        assert getattr(tracegraph, name) is not None
