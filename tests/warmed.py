"""Imported by the server of `tests.children`: what its children need, imported and compiled."""

import indexplan.cli  # noqa: F401
from tests.builders import warm

warm()
