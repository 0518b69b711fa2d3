"""A verb that would fill a disk asks first, or says that it needs --force."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli import asking, main
from tests.cli.test_cli import fails


class Terminal(io.StringIO):
    """A stream that says that somebody looks at it."""

    def isatty(self) -> bool:
        return True


HUGE = ["--num-samples=1e12", "--world-size=1024", "--batch-size=256"]
SMALL = ["--num-samples=1000", "--world-size=2", "--batch-size=5"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with the spec of a huge plan."""
    monkeypatch.chdir(tmp_path)
    plan = ip.Plan(ip.Shuffle(10**12), world_size=4, batch_size=256)
    Path("huge.json").write_text(plan.to_json())
    return tmp_path


def test_no_terminal(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """A script is told the size, and --force; nothing is written."""
    for words in (["export", "huge.json", "out"], ["build", "huge.plan", *HUGE]):
        said = fails(capsys, 2, *words)
        assert said.startswith("--force must be given to write more than 100 GB; got '8.0 TB for ")
    assert 2 == main(["build", "huge.plan", *HUGE, "--epochs=200", "--part=1/100"])
    assert "'16.0 TB for huge.plan'" in capsys.readouterr().err
    assert ["huge.json"] == [path.name for path in here.iterdir()]


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("\n", False), ("", False)])
def test_a_terminal(
    answer: str, written: bool, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    """Somebody at a terminal is asked, and only a yes is one."""
    monkeypatch.setattr(asking, "LIMIT", 1000)
    err = Terminal()
    for words in (["build", "a.plan", *SMALL], ["export", "small.json", "out"]):
        Path("small.json").write_text(
            ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=5).to_json()
        )
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdin", Terminal(answer))
            patch.setattr("sys.stderr", err)
            assert main(words) == (0 if written else 2)
    assert "write 0 GB to a.plan? [y/N] " in err.getvalue()
    assert written == (here / "a.plan").exists() == (here / "out").exists()


def test_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --force nobody is asked."""
    monkeypatch.setattr(asking, "LIMIT", 1000)
    assert 0 == main(["build", "a.plan", *SMALL, "--force"])
    assert 0 == main(["export", "a.plan", "out", "--force"])
    assert 2 == main(["export", "a.plan", "out2"])
