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


def test_page_of_plan_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the page whose other blocks need stores and clusters: those that save, load and export.

    Two arrays and a slice are a batch, and a file without a header is the order, cut into the
    plan's global batches.
    """
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}

    def run(words: str) -> None:
        (block,) = [each for each in blocks("docs/files.md") if words in each]
        exec(block, names)  # noqa: S102 (our own page)

    run("ip.verify(plan).ok")
    plan = ip.Plan(ip.Shuffle(1_000_000), world_size=8, batch_size=256)
    assert plan == names["plan"].replace(world_size=8)
    assert (0, 1, 2, 3) == ip.types.Stored("run.plan").build.epochs
    (command,) = re.findall(r"```sh\nindexplan (.*)\n```", (ROOT / "docs/files.md").read_text())
    assert 0 == main(command.split())
    run("steps[17]")
    assert plan.batch(0, step=17, rank=2).tolist() == names["batch"].tolist()
    run("offset=128")
    assert plan.indices(0, rank=2).tolist() == names["indices"].tolist()
    run("no header")
    order = np.memmap("global_indices.npy", mode="r", dtype=np.uint32)
    assert plan.order.take(0, 0, 1_000_000).tolist() == order.tolist()
    full = plan.replace(remainder="drop")
    for step in (0, 17, full.steps(0)[-1]):
        ranks = [full.batch(0, step=step, rank=rank).tolist() for rank in range(8)]
        assert sum(ranks, []) == order[step * 2048 : (step + 1) * 2048].tolist()
