"""The lines that pages say to write under each trainer run, and read all samples."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import transformers
from accelerate import Accelerator
from lightning.fabric import Fabric
from torch.nn.functional import cross_entropy

from tests.support.ports import free_port
from tests.test_docs import blocks, check_page
from tests.trainers.ranks import ROOT

SECTIONS = (
    "Lightning and Fabric",
    "HF Trainer",
    "Accelerate",
    "torchdata",
    "Tensor, context",
    "Passes that end early",
)


def written(title: str) -> list[str]:
    """The page's first block, then those of a section."""
    page = (ROOT / "docs" / "trainers.md").read_text()
    (section,) = [part for part in page.split("\n## ") for part in part.split("\n### ")
                  if part.startswith(title)]  # fmt: skip
    every = blocks("docs/trainers.md")
    return [every[0], *(block for block in every if block in section)]


class Line(torch.nn.Linear):
    """A model that counts what it is trained on."""

    def __init__(self) -> None:
        super().__init__(8, 2)
        self.read = 0

    def forward(self, x: Any, labels: Any = None) -> Any:
        """Return scores; with labels, what HF Trainer wants."""
        self.read += len(x)
        scores = super().forward(x)
        if labels is None:
            return scores
        return {"loss": cross_entropy(scores, labels), "logits": scores}


def run(*codes: str, **names: Any) -> dict[str, Any]:
    """Run blocks one after another; return what they define."""
    for code in codes:
        exec(code, names)  # noqa: S102 (our own page)
    return names


def read_once(names: dict[str, Any]) -> int:
    """Read the loader that a block has made; return the number of samples."""
    return sum(len(labels) for _, labels in names["loader"])


def test_passes_that_end_early(capsys: pytest.CaptureFixture[str]) -> None:
    """Short epochs read what the page says, without a word."""
    first, short = written("Passes that end early")
    run(first, short)
    assert short.rstrip().endswith(f"# {capsys.readouterr().out.strip()}")


@pytest.mark.filterwarnings("ignore")  # Lightning's advice
def test_lightning_and_fabric(tmp_path: Path) -> None:
    """The script goes on from its last checkpoint; Fabric's file holds the loader's state."""
    first, script, few, fabric = written("Lightning and Fabric")
    seen: list[int] = []  # the sizes of the batches that the script's model got

    def note(module: torch.nn.Module, inputs: Any) -> None:
        if isinstance(module, torch.nn.Linear):
            seen.append(len(inputs[0]))

    count = torch.nn.modules.module.register_module_forward_pre_hook(note)
    with contextlib.chdir(tmp_path), count:
        names = run(script.replace("max_epochs=3", "max_epochs=3, max_steps=130"))
        assert [130, 1040] == [len(seen), sum(seen)]
        names = run(script, **names)
        assert [375, 3000, 375] == [len(seen), sum(seen), names["trainer"].global_step]
    plan = names["loader"].plan.replace(world_size=1)
    rare = [(plan.batch(epoch=0, step=step, rank=0) >= 980).sum() for step in range(125)]
    assert [4] * 125 == rare
    names = run(first, few)
    assert [16, 16] == [sum(len(x) for x, _ in names["overfitted"]) for _ in range(2)]
    with contextlib.chdir(tmp_path):
        run(fabric, **{**names, "fabric": Fabric(accelerator="cpu", devices=1)})
        assert 1 == torch.load("run.ckpt")["loader"]["cursor"]["epoch"]


def test_hf_trainer(tmp_path: Path) -> None:
    """Two epochs are read, and the state is kept; predictions come in the dataset's order.

    tests/trainers/test_evaluation.py evaluates so on two ranks.
    """
    first, block, evaluating = written("HF Trainer")
    options: Any = {"num_train_epochs": 2, "save_steps": 100, "use_cpu": True, "report_to": "none"}
    arguments = transformers.TrainingArguments(str(tmp_path), disable_tqdm=True, **options)

    def collate(items: list[Any]) -> dict[str, Any]:
        inputs, labels = torch.utils.data.default_collate(items)
        return {"x": inputs, "labels": labels}

    given = {"model": Line(), "arguments": arguments, "collate": collate}
    names = run(first, block, transformers=transformers, **given)
    names["trainer"].train()
    assert 2 * 1003 == names["model"].read
    assert "cursor" in (tmp_path / "checkpoint-100" / "trainer_state.json").read_text()
    names = run(evaluating, **names)
    trainer = names["EvaluatingTrainer"](names["model"], arguments, data_collator=collate)
    with torch.no_grad():
        scores = names["model"](names["dataset"][:][0])
    torch.testing.assert_close(scores, torch.tensor(trainer.predict(names["dataset"]).predictions))
    assert "eval_loss" in trainer.evaluate(names["dataset"])


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
def test_accelerate_and_torchdata() -> None:
    """Their loaders read an epoch; a prepared one is at its end."""
    model = Line()
    given = {"accelerator": Accelerator(cpu=True), "model": model}
    given["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    names = run(*written("Accelerate"), **given)
    assert 1003 == read_once(names)
    assert 1 == names["loader"].state_dict()["cursor"]["epoch"]
    assert 1003 == read_once(run(*written("torchdata")))


def test_meshes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh's data-parallel dimension makes the ranks; here of one process, on its CPU."""
    first, block = written("Tensor, context")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        assert 1003 == read_once(run(first, block.replace('"cuda", (2, 4)', '"cpu", (1, 1)')))
    finally:
        dist.destroy_process_group()


ELSEWHERE = (  # what a block of the page has, in its sequence, that runs in another file
    "class KeepLoader",  # tests/through/test_loops.py
    "def end_epoch",  # tests/through/test_loops.py
    "class Save(keras",  # tests/through/test_loops.py
    "SLURM_PROCID",  # tests/trainers/test_slurm.py
    "__getitems__",  # tests/test_docs.py, as the page's first
)


def test_each_section_is_looked_at() -> None:
    """Every block runs here or elsewhere."""
    run = {block for title in SECTIONS for block in written(title)}
    left = [block for block in blocks("docs/trainers.md") if block not in run]
    assert len(ELSEWHERE) == len(left)
    assert [word in block for word, block in zip(ELSEWHERE, left, strict=True)] == [True] * 5


# --- docs/migrate/pytorch.md


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
def test_the_page_on_other_samplers_runs(tmp_path: Path) -> None:
    """The codes before and after run, and print what the page shows."""
    check_page("migrate/pytorch", tmp_path)
