"""The command line, as tests type it: what it prints, and how it exits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from indexplan.cli import main


class Shell:
    """Types commands, and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: str, code: int = 0) -> str:
        """What a command prints that exits so, and says nothing on stderr."""
        assert code == main(words)
        said = self._capsys.readouterr()
        assert "" == said.err
        return said.out

    def json(self, *words: str, code: int = 0) -> Any:
        """The same as JSON."""
        return json.loads(self.run(*words, "--json", code=code))

    def fails(self, code: int, *words: str) -> str:
        """The one line that a command that fails prints."""
        assert code == main(words)
        said = self._capsys.readouterr()
        assert ("", 1) == (said.out, said.err.count("\n"))
        assert said.err.startswith("indexplan: ")
        return said.err[len("indexplan: ") : -1]
