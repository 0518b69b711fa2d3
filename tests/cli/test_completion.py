"""Pressing TAB in a real bash."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from indexplan.cli import main
from indexplan.partition.remainders import REMAINDERS


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The script for bash, in a folder with a plan in a file."""
    assert 0 == main(["completion", "bash"])
    path = tmp_path / "indexplan.bash"
    path.write_text(capsys.readouterr().out)
    (tmp_path / "my.plan").touch()
    return path


def completed(script: Path, line: str) -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    code = (
        f"source {shlex.quote(str(script))}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); "
        f"COMP_CWORD={len(words) - 1}; "
        "_shtab_indexplan indexplan "
        f"{shlex.quote(words[-1])} {shlex.quote(words[-2])}; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-c", code]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=True)
    return sorted(filter(None, (word.strip() for word in done.stdout.split("\n"))))


def test_bash(script: Path) -> None:
    """Verbs, options, choices and files are completed."""
    assert ["build"] == completed(script, "indexplan bu")
    assert ["diff"] == completed(script, "indexplan d")
    assert ["--world-size"] == completed(script, "indexplan build my.plan --wo")
    assert sorted(REMAINDERS) == completed(script, "indexplan build my.plan --remainder ")
    assert ["mixing"] == completed(script, "indexplan plot my.plan --kind m")
    assert ["ledger", "locate"] == completed(script, "indexplan help l")
    assert ["BlockShuffle"] == completed(script, "indexplan orders BlockS")
    assert ["my.plan"] == completed(script, "indexplan show my")


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Their scripts name every verb."""
    assert 0 == main(["completion", shell])
    said = capsys.readouterr().out
    assert all(verb in said for verb in ("build", "warm-up", "completion", "help", "BlockShuffle"))
