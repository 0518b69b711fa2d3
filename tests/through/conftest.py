"""What needs its stage of .ci/run: tests/conftest.py reads this."""

import pytest

pytestmark = pytest.mark.frameworks
