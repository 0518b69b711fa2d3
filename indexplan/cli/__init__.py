"""The command line: `main` runs one command; each verb has a file that adds it to the parser."""

from indexplan.cli.main import main

__all__ = ["main"]
