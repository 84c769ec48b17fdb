"""Hypothesis' settings for mutation runs; tests/conftest.py loads them by HYPOTHESIS_PROFILE.

Derandomised, so that a verdict repeats. Not Phase.shrink: a mutant is killed by the first example
that fails, not by the smallest.
"""

from hypothesis import Phase, settings

NAME = "mutation"


def register() -> None:
    """Make the profile known, before any test is imported."""
    settings.register_profile(
        NAME,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
