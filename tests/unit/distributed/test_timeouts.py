"""How long peers are waited for."""

from __future__ import annotations

import math

import pytest

from tracegraph.distributed import peer_timeout, set_peer_timeout


def test_a_call_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_PEER_TIMEOUT", " 45.5 ")
    assert peer_timeout() == 45.5
    try:
        set_peer_timeout(math.inf)
        assert peer_timeout() == math.inf
    finally:
        set_peer_timeout(None)
    assert peer_timeout() == 45.5


@pytest.mark.parametrize("seconds", ["soon", "0", "nan", "-1"])
def test_what_is_no_time_is_refused(seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_PEER_TIMEOUT", seconds)
    with pytest.raises(ValueError, match="set it to a number of seconds, such as 60"):
        peer_timeout()
    given: list[tuple[object, type[Exception]]] = [(seconds, TypeError), (True, TypeError)]
    for value, error in [*given, (0.0, ValueError), (math.nan, ValueError)]:
        with pytest.raises(error, match="set_peer_timeout takes"):
            set_peer_timeout(value)  # type: ignore[arg-type]
