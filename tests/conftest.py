"""What every test shares: the profiles of Hypothesis.

With CI in the environment (mutation runs set it too) examples are the same every time; a nightly
run asks for more of them with HYPOTHESIS_PROFILE=nightly.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("laptop", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile(
    "nightly",
    deadline=None,
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "laptop")
)
