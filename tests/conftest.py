"""How many examples hypothesis tries: few by default, `--hypothesis-profile=long` for many."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

settings.register_profile(
    "ci", max_examples=40, deadline=None, derandomize=True, suppress_health_check=SLOW
)
settings.register_profile("long", max_examples=2500, deadline=None, suppress_health_check=SLOW)
settings.load_profile("ci")
