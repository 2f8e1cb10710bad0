"""Turns of benchmarks are taken on quiet cores, and the thread goes back to where it was."""

import os

import pytest

from benchmarks.harness import quiet
from benchmarks.harness.quiet import QuietCores


@pytest.fixture
def cores(monkeypatch):
    """Four cores, their paces, and where the thread may run."""
    paces = {0: 2.0, 1: 1.0, 2: 2.0, 3: 1.05}
    allowed = {0, 1, 2, 3}
    places = [allowed]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: places[-1], raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, to: places.append(to), raising=False)
    monkeypatch.setattr(quiet, "_pace", lambda: paces[next(iter(places[-1]))])
    return paces, places


def turn(quiet_cores, places):
    """Where a turn is taken."""
    with quiet_cores.turn():
        return places[-1]


def test_the_first_turn_is_taken_on_the_fastest_of_all_cores(cores):
    _, places = cores
    assert turn(QuietCores(), places) == {1}
    assert places[-1] == {0, 1, 2, 3}


def test_a_core_that_stays_quiet_is_kept(cores):
    _, places = cores
    quiet_cores = QuietCores()
    turn(quiet_cores, places)
    tried = len(places)
    assert turn(quiet_cores, places) == {1}
    assert [*map(sorted, places[tried:])] == [[1], [1], [0, 1, 2, 3]]


def test_a_core_that_is_disturbed_is_left_for_one_that_is_nearly_as_fast_as_it_was(cores):
    paces, places = cores
    quiet_cores = QuietCores()
    turn(quiet_cores, places)
    paces[1] = 2.0
    assert turn(quiet_cores, places) == {3}
    assert quiet_cores.paces == [1.0, 1.05]


def test_where_all_are_disturbed_the_fastest_is_taken(cores):
    paces, places = cores
    quiet_cores = QuietCores()
    turn(quiet_cores, places)
    paces.update({0: 1.9, 1: 2.0, 3: 2.0})
    assert turn(quiet_cores, places) == {0}


def test_the_thread_goes_back_after_a_failure(cores):
    _, places = cores
    with pytest.raises(ZeroDivisionError), QuietCores().turn():
        raise ZeroDivisionError
    assert places[-1] == {0, 1, 2, 3}


def test_without_affinities_turns_are_timed_where_they_are(cores, monkeypatch):
    _, places = cores
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.setattr(quiet, "_pace", lambda: 1.5)
    quiet_cores = QuietCores()
    assert turn(quiet_cores, places) == {0, 1, 2, 3}
    assert quiet_cores.paces == [1.5]


def test_a_pace_is_a_time():
    assert 0 < quiet._pace() < 1
