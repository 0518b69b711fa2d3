"""A verb that would fill a disk needs --force."""

from __future__ import annotations

from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli import asking, main
from tests.cli.test_cli import fails

HUGE = ["--num-samples=1e12", "--world-size=1024", "--batch-size=256"]
SMALL = ["--num-samples=1000", "--world-size=2", "--batch-size=5"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the spec of a huge plan."""
    monkeypatch.chdir(tmp_path)
    plan = ip.Plan(ip.Shuffle(10**12), world_size=4, batch_size=256)
    Path("huge.json").write_text(plan.to_json())
    return tmp_path


def test_too_much(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """The size is told, and --force; nothing is written."""
    for words in (["export", "huge.json", "out"], ["build", "huge.plan", *HUGE]):
        said = fails(capsys, 2, *words)
        assert said.startswith("--force must be given to write more than 100 GB; got '8.0 TB for ")
    assert 2 == main(["build", "huge.plan", *HUGE, "--epochs=200", "--part=1/100"])
    assert "'16.0 TB for huge.plan'" in capsys.readouterr().err
    assert ["huge.json"] == [path.name for path in here.iterdir()]


def test_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --force it is written."""
    monkeypatch.setattr(asking, "LIMIT", 1000)
    assert 0 == main(["build", "a.plan", *SMALL, "--force"])
    assert 0 == main(["export", "a.plan", "out", "--force"])
    assert 2 == main(["export", "a.plan", "out2"])
