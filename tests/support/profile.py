"""The test profile: quick, or deep with more examples of each property."""

import os

from hypothesis import HealthCheck, settings

# the deep profile (scripts/test-deep): more examples, and the tests marked so
DEEP_PROFILE = "TOOLCATALOG_DEEP" in os.environ


def example_settings(number: int, *exempt: HealthCheck) -> settings:
    """So many examples of a property; of the health checks of hypothesis these are left out. The
    deep profile tries fifteen times as many.
    """
    return settings(
        max_examples=number * (15 if DEEP_PROFILE else 1),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, *exempt],
    )
