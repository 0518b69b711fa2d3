"""The pages are true: their blocks run, one after another, and print what they show."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main
from tests.test_docs import ROOT, blocks, check_page, modules

__all__ = ["modules"]  # a fixture

# whose every Python and shell block runs, in the page's order, and says what it prints
PAGES = (
    "index",
    "idea",
    "epochs",
    "resume",
    "ledger",
    "live",
    "determinism",
    "faq",
    "orders",
    "classes",
    "mixtures",
    "tokens",
    "lengths",
    "shards",
    "subsets",
    "migrate/grain",
    "migrate/webdataset",
    "pictures",
    "command-line",
    *(f"tutorials/{path.stem}" for path in sorted((ROOT / "docs" / "tutorials").glob("*.md"))),
)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """What a page's blocks print is what it shows."""
    check_page(page, tmp_path)


# The page of plan files, whose blocks need stores and clusters too: those for plain arrays.

PLAN = ip.Plan(ip.Shuffle(5003, seed=2), world_size=8, batch_size=20)  # the last step is short


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.plan, and arrays as the page's command exports them."""
    root = tmp_path_factory.mktemp("page")
    ip.save(PLAN.replace(world_size=None), root / "run.plan")
    (command,) = re.findall(r"```sh\nindexplan (.*)\n```", (ROOT / "docs/files.md").read_text())
    words = [str(root / w) if w in {"run.plan", "arrays"} else w for w in command.split()]
    assert 0 == main(words)
    return root


def names_after(words: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the block of the page that holds some words leaves behind, run in a folder."""
    (block,) = [each for each in blocks("docs/files.md") if words in each]
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "page"}
    exec(block, names)  # noqa: S102 (our own page)
    return names


def test_build_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is saved, loaded and verified, as the page begins."""
    plan = names_after("ip.verify(plan).ok", tmp_path, monkeypatch)["plan"]
    assert (0, 1, 2, 3) == ip.types.Stored(tmp_path / "run.plan").build.epochs
    assert ip.Shuffle(1_000_000).take(3, 0, 9).tolist() == plan.order.take(3, 0, 9).tolist()


def test_numpy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arrays and a slice are a batch."""
    batch = names_after("steps[17]", folder, monkeypatch)["batch"]
    assert PLAN.batch(0, step=17, rank=2).tolist() == batch.tolist()


def test_headerless(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file without a header is the order, cut into the plan's global batches."""
    names_after("no header", folder, monkeypatch)
    order = np.memmap("global_indices.npy", mode="r", dtype=np.uint32)
    assert PLAN.order.take(0, 0, 5003).tolist() == order.tolist()
    full = PLAN.replace(remainder="drop")
    for step, batch in enumerate(order[: 5003 // 160 * 160].reshape(-1, 160)):
        ranks = [full.batch(0, step=step, rank=rank).tolist() for rank in range(8)]
        assert sum(ranks, []) == batch.tolist()
    mapped = names_after("offset=128", folder, monkeypatch)["indices"]
    assert PLAN.indices(0, rank=2).tolist() == mapped.tolist()
