"""What the children of `tests.support.children` need, imported and compiled by their server."""

import indexplan.cli  # noqa: F401
from tests.support.builders import warm

warm()
