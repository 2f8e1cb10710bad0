"""Interning: one object for each key, as long as someone holds it."""

from tests.helpers.threads import collect_garbage
from tracegraph.ir.interning import Interned


class Thing:
    pass


def test_what_was_added_first_is_what_all_get() -> None:
    things, first = Interned(), Thing()
    assert things.get("a") is None
    assert things.add("a", first) is first
    assert things.add("a", Thing()) is first
    assert things.get("a") is first


def test_an_object_that_nobody_holds_is_forgotten() -> None:
    things = Interned()
    things.add("a", Thing())
    collect_garbage()
    assert things.get("a") is None
    second = Thing()
    assert things.add("a", second) is second


def test_the_death_of_an_object_does_not_remove_its_successor() -> None:
    things = Interned()
    key_of_second = ("a", 1)
    second = Thing()
    first = things.add(("a", 1), Thing())
    del first
    assert things.add(key_of_second, second) is second
    collect_garbage()
    assert things.get(("a", 1)) is second


def test_an_object_may_die_while_another_is_added() -> None:
    things = Interned()
    held = [things.add("held", Thing())]

    class Key:
        """Equal to the others, which it finds out while the entries are looked through."""

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            held.clear()
            return isinstance(other, Key)

    first = things.add(Key(), Thing())
    assert things.add(Key(), Thing()) is first
    assert things.get("held") is None
