"""Run random histories, and count every sample: `python -m tests.soak --seconds 60`.

A history is a run of one order. It is stopped at a random step, again and again, and goes on with
other ranks, another batch size, schedule, nesting and remainder, computed or from a plan
directory. What lies between two stops is a leg. In the end each sample of each epoch has to have
been read once, or to be accounted for as dropped or padded. Exits with 1 if it is not so, or if
anything raised. Loaders have `python -m tests.histories`.
"""

from __future__ import annotations

import sys

from tests.soak.history import tell
from tests.support import stories

TOTALS = (
    "legs",
    "samples lost",
    "samples repeated",
    "histories that raised",
    "steps",
    "samples read",
    "units dropped, as accounted for",
    "units padded, as accounted for",
)

if __name__ == "__main__":
    given = stories.options("tests.soak", __doc__).parse_args()
    sys.exit(stories.run(given, tell, TOTALS, "tests.soak"))
