"""Datasets: their size, and what is said when they change."""

import re
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.support.children import nobody


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of four samples and one file that is none."""
    root = tmp_path / "data"
    for name in ("b/2.txt", "a/10.txt", "a/9.txt", "top.txt", "a/skip.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def saved_for(dataset: ip.Dataset, path: Path) -> Path:
    """A plan directory for a dataset."""
    plan = ip.Plan(ip.Shuffle(dataset.num_samples), world_size=2, batch_size=2)
    ip.save(plan, path, dataset=dataset)
    return path


def test_what_the_samples_are(folder: Path, tmp_path: Path) -> None:
    """Matching files by relative name, wherever the folder is; rows of an array, by its header."""
    before = ip.Dataset.scan(folder, "**/*.txt")
    assert ("a/10.txt", "a/9.txt", "b/2.txt", "top.txt") == before.names
    assert (4, 29) == (before.num_samples, before.num_bytes)
    folder.rename(tmp_path / "elsewhere")
    assert before == ip.Dataset.scan(tmp_path / "elsewhere", "**/*.txt")
    np.save(tmp_path / "rows.npy", np.zeros((7, 3), np.float32))
    array = ip.Dataset.scan(tmp_path / "rows.npy")
    assert (7, 128 + 84) == (array.num_samples, array.num_bytes)
    assert "dtype <f4, shape (7, 3), row-major" == array.header
    path = saved_for(array, tmp_path / "b.plan")
    np.save(tmp_path / "rows.npy", np.zeros((8, 3), np.float32))
    words = re.escape(
        "its header was dtype <f4, shape (7, 3), row-major, and is dtype <f4, shape (8"
    )
    with pytest.raises(ip.PlanFileError, match=words):
        ip.load(path, dataset=ip.Dataset.scan(tmp_path / "rows.npy"))


def test_changes_of_a_folder(folder: Path, tmp_path: Path) -> None:
    """A folder that lost, gained, renamed or rewrote files is refused, saying which of these."""
    path = saved_for(ip.Dataset.scan(folder, "**/*.txt"), tmp_path / "a.plan")
    start = "dataset must be the one that the plan was built for; got another: "
    end = "; restore the dataset, or build a new plan for this one"

    def said(pattern: str = "**/*.txt") -> str:
        with pytest.raises(ip.PlanFileError) as error:
            ip.load(path, dataset=ip.Dataset.scan(folder, pattern))
        text = str(error.value)
        assert text.startswith(start)
        assert text.endswith(end)
        return text[len(start) : -len(end)]

    (folder / "top.txt").rename(folder / "tip.txt")
    assert "files were added, removed or renamed" == said()
    (folder / "tip.txt").rename(folder / "top.txt")
    (folder / "top.txt").write_text("longer than before")
    assert "it had 29 bytes, has 40; sizes of files changed" == said()
    (folder / "top.txt").write_text("top.txt")
    (folder / "new.txt").write_text("")
    assert said().startswith("it had 4 samples, has 5; files were added, removed or renamed; ")
    (folder / "new.txt").unlink()
    assert said("**/*").startswith("its pattern was **/*.txt, and is **/*; it had 4 samples, has 5")


def test_folders_that_may_not_be_listed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that a glob passes over are not left out in silence; other folders don't matter."""
    monkeypatch.chdir(place)
    for name in ("top.txt", "a/1.txt", "b/c/2.txt"):
        path = Path("data", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for shut, reaching, others in (
        ("data", ("**/*", "*", "a/*"), ()),
        ("data/a", ("**/*", "*/*", "a/*"), ("*.txt", "b/**/*")),
        ("data/b/c", ("**/*", "*/c/*", "b/**/*"), ("*", "*/*.txt", "a/*")),
    ):
        counts = [ip.Dataset.scan("data", pattern).num_samples for pattern in others]
        with nobody({shut: 0o300}):  # may be entered, not listed
            assert counts == [ip.Dataset.scan("data", each).num_samples for each in others]
            for pattern in reaching:
                with pytest.raises(ip.IndexPlanError, match="must be readable; got 'Permission"):
                    ip.Dataset.scan("data", pattern)
