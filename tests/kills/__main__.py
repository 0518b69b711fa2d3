"""`python -m tests.kills`: a file of its own, which forked processes need not run again."""

import sys

from tests.kills import main

main(sys.argv[1:])
