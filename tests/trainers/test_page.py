"""The lines that docs/trainers.md says to write under each trainer run, and read all samples."""

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
from tests.test_docs import blocks
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


def test_passes_that_end_early(capsys: pytest.CaptureFixture[str]) -> None:
    """Short epochs read what the page says, without a word."""
    first, short = written("Passes that end early")
    names: dict[str, Any] = {}
    exec(first, names)  # noqa: S102 (our own page)
    exec(short, names)  # noqa: S102
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
    names: dict[str, Any] = {}
    with contextlib.chdir(tmp_path), count:
        stopped = script.replace("max_epochs=3", "max_epochs=3, max_steps=130")
        exec(stopped, names)  # noqa: S102 (our own page)
        assert [130, 1040] == [len(seen), sum(seen)]
        exec(script, names)  # noqa: S102
        assert [375, 3000, 375] == [len(seen), sum(seen), names["trainer"].global_step]
    plan = names["loader"].plan.replace(world_size=1)
    rare = [(plan.batch(epoch=0, step=step, rank=0) >= 980).sum() for step in range(125)]
    assert [4] * 125 == rare
    names = {}
    exec(first, names)  # noqa: S102
    exec(few, names)  # noqa: S102
    assert [16, 16] == [sum(len(x) for x, _ in names["overfitted"]) for _ in range(2)]
    names["fabric"] = Fabric(accelerator="cpu", devices=1)
    with contextlib.chdir(tmp_path):
        exec(fabric, names)  # noqa: S102
        assert 1 == torch.load("run.ckpt")["loader"]["cursor"]["epoch"]


def test_hf_trainer(tmp_path: Path) -> None:
    """Two epochs are read, and the state is kept; predictions come in the dataset's order.

    tests/trainers/test_hf_trainer.py evaluates so on two ranks.
    """
    first, block, evaluating = written("HF Trainer")
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        num_train_epochs=2,
        save_steps=100,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )

    def collate(items: list[Any]) -> dict[str, Any]:
        inputs, labels = torch.utils.data.default_collate(items)
        return {"x": inputs, "labels": labels}

    names: dict[str, Any] = {"model": Line(), "arguments": arguments, "collate": collate}
    names["transformers"] = transformers
    exec(first, names)  # noqa: S102
    exec(block, names)  # noqa: S102
    names["trainer"].train()
    assert 2 * 1003 == names["model"].read
    assert "cursor" in (tmp_path / "checkpoint-100" / "trainer_state.json").read_text()
    exec(evaluating, names)  # noqa: S102
    trainer = names["EvaluatingTrainer"](names["model"], arguments, data_collator=collate)
    with torch.no_grad():
        scores = names["model"](names["dataset"][:][0])
    torch.testing.assert_close(scores, torch.tensor(trainer.predict(names["dataset"]).predictions))
    assert "eval_loss" in trainer.evaluate(names["dataset"])


def test_accelerate() -> None:
    """A prepared loader reads an epoch, and is at its end."""
    first, block = written("Accelerate")
    model = Line()
    names: dict[str, Any] = {"accelerator": Accelerator(cpu=True), "model": model}
    names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.1)
    exec(first, names)  # noqa: S102
    exec(block, names)  # noqa: S102
    assert 1003 == sum(len(labels) for _, labels in names["loader"])
    assert 1 == names["loader"].state_dict()["cursor"]["epoch"]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it
def test_torchdata() -> None:
    """Its loader reads an epoch."""
    names: dict[str, Any] = {}
    for block in written("torchdata"):
        exec(block, names)  # noqa: S102
    assert 1003 == sum(len(labels) for _, labels in names["loader"])


def test_meshes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh's data-parallel dimension makes the ranks; here of one process, on its CPU."""
    first, block = written("Tensor, context")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        names: dict[str, Any] = {}
        exec(first, names)  # noqa: S102
        exec(block.replace('"cuda", (2, 4)', '"cpu", (1, 1)'), names)  # noqa: S102
        assert 1003 == sum(len(labels) for _, labels in names["loader"])
    finally:
        dist.destroy_process_group()


ELSEWHERE = (  # what a block of the page has, in its sequence, that runs in another file
    "class KeepLoader",  # tests/through/loops_checks.py
    "def end_epoch",  # tests/through/loops_checks.py
    "class Save(keras",  # tests/through/loops_checks.py
    "SLURM_PROCID",  # tests/trainers/test_slurm.py
    "__getitems__",  # tests/test_docs.py, as the page's first
)


def test_each_section_is_looked_at() -> None:
    """Every block runs here or elsewhere."""
    run = {block for title in SECTIONS for block in written(title)}
    left = [block for block in blocks("docs/trainers.md") if block not in run]
    assert len(ELSEWHERE) == len(left)
    assert [word in block for word, block in zip(ELSEWHERE, left, strict=True)] == [True] * 5
