"""Settings of the whole suite: Hypothesis draws the same examples on every machine unless asked for more."""

import os

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("night", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
