"""One step is a step, not 1 steps: whatever a verb says of a plan in which there is one of all."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from indexplan.cli import main

ONE = ["--world-size=1", "--batch-size=1"]
COMMANDS = [
    ["build", "new.plan", "--num-samples=1", *ONE],
    ["build", "one.plan", "--num-samples=1", *ONE],
    ["show", "one.plan"],
    ["show", "one.plan", "--epoch=0", "--step=0"],
    ["explain", "one.plan", "--index=0", "--epochs=1"],
    ["explain", "dropped.plan", "--index=0", "--epochs=1"],
    ["locate", "one.plan", "--index=0", "--epoch=0"],
    ["diff", "one.plan", "dropped.plan", "--epochs=1"],
    ["verify", "one.plan"],
    ["export", "one.plan", "out"],
    ["shards", "sizes.npy"],
    ["shards", "one.npy", "--plan=one.plan", "--ranks-per-node=1"],
    ["show", "groups.plan"],
    ["show", "groups.plan"],
    ["show", "balanced.plan"],
    ["show", "files.plan"],
    ["locate", "one.plan", "--index=1", "--epoch=0"],
    ["show", "one.plan", "--epoch=0", "--step=1"],
    ["verify", "files.plan", "--dataset=data"],
]


def test_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No verb says 1 of several, in its answer or in an error."""
    monkeypatch.chdir(tmp_path)
    for name, values in {"one": [1], "sizes": [0], "labels": [0]}.items():
        np.save(f"{name}.npy", values)
    Path("data").mkdir()
    Path("data/a").write_text("x")
    built = {
        "one": ["--num-samples=1"],
        "groups": ["--order=ClassBalanced('labels.npy')"],
        "balanced": ["--num-samples=1", "--balance=Balance('one.npy')"],
        "files": ["--dataset=data"],
    }
    for name, words in built.items():
        assert 0 == main(["build", f"{name}.plan", *words, *ONE])
    Path("data/a").write_text("")  # has changed, and is empty
    capsys.readouterr()
    for words in COMMANDS:
        main(words)
        said = capsys.readouterr()
        text = said.out + said.err
        assert text
        found = re.findall(r"(?<![\w,.:/*-])1 (?!as|is|was)[a-z-]+s\b", text)
        assert [] == found, (words, text)
