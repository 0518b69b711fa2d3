"""How Hypothesis runs: no deadlines; the same examples every time under CI.

`--hypothesis-profile=thorough` looks longer, and `few` not as long.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ["COLUMNS"] = "80"  # tables are as wide, and help, wherever the tests are run

settings.register_profile(
    "indexplan",
    deadline=None,  # the first example may compile a kernel
    print_blob=True,
    max_examples=60,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", settings.get_profile("indexplan"), max_examples=2000)
settings.register_profile("few", settings.get_profile("indexplan"), max_examples=8)
settings.load_profile("indexplan")
