"""`python -m indexplan`: the command line."""

import sys

from indexplan.cli import main

sys.exit(main())
