"""How many examples Hypothesis draws for a law that needs more than others, or is slow."""

from __future__ import annotations

from hypothesis import settings

USUAL = 60  # of the profile `deep`


def examples(number: int) -> settings:
    """Draw so many where other laws draw 60; under another profile, in proportion, at least 5."""
    return settings(max_examples=max(5, number * settings().max_examples // USUAL))
