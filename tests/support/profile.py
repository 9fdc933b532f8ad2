"""The test profile: quick, or deep with more examples of each property."""

import os

from hypothesis import HealthCheck, settings

# the deep profile (scripts/test-deep): more examples, and the tests marked so
DEEP_PROFILE = "TOOLCATALOG_DEEP" in os.environ


def example_settings(number: int, *exempt: HealthCheck) -> settings:
    """Settings of hypothesis for this number of examples, or fifteen times as many in the deep
    profile.
    """
    return settings(
        max_examples=number * (15 if DEEP_PROFILE else 1),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, *exempt],
    )
