"""pytorch-ignite's Engine: its checkpoint holds the loader's state, and the plan ends epochs."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.test_docs import blocks

with warnings.catch_warnings():  # torch's own, of what ignite imports
    warnings.simplefilter("ignore", DeprecationWarning)
    from ignite.engine import Engine, Events
    from ignite.handlers import Checkpoint, DiskSaver

PLAN = ip.Plan(ip.Shuffle(43, seed=3), batch_size=4)


def trained(
    folder: Path, loader: PlanLoader, *, stop: int = 0, resume: bool = False
) -> tuple[list[Any], list[int]]:
    """Train three epochs, as docs/trainers.md says; return the batches, and where epochs ended."""
    read, ends = list[Any](), list[int]()
    trainer = Engine(lambda _, batch: read.append(batch.tolist()))
    kept = {"trainer": trainer, "loader": loader}
    save = Checkpoint(kept, DiskSaver(str(folder), require_empty=False), filename_pattern="kept.pt")
    if resume:
        Checkpoint.load_objects(kept, torch.load(folder / "kept.pt"))
    trainer.add_event_handler(Events.ITERATION_COMPLETED, save)

    @trainer.on(Events.ITERATION_COMPLETED(event_filter=lambda *_: loader.cursor.step == 0))  # type: ignore[untyped-decorator,unused-ignore]
    def end_epoch(trainer: Engine) -> None:
        ends.append(len(read))
        if loader.cursor.epoch == 3:
            trainer.terminate()

    @trainer.on(Events.ITERATION_COMPLETED)  # type: ignore[untyped-decorator,unused-ignore]
    def end(trainer: Engine) -> None:
        if len(read) == stop:
            trainer.terminate()

    trainer.run(loader, max_epochs=10**6)
    return read, ends


@pytest.mark.parametrize("stop", [5, 11, 15])
@pytest.mark.parametrize(("ranks", "size"), [(1, 4), (3, 4), (2, 7)])
def test_a_run_resumes_exactly(tmp_path: Path, stop: int, ranks: int, size: int) -> None:
    """In an epoch and at its end, on other ranks and in other batches; epochs end where they do."""
    loader = PlanLoader(range(43), PLAN, num_workers=2 * (stop == 15))
    first, _ = trained(tmp_path, loader, stop=stop)
    one = PLAN.replace(world_size=1)
    assert [one.batch(n // 11, step=n % 11, rank=0).tolist() for n in range(stop)] == first
    plan = PLAN.replace(batch_size=size)
    rest = plan.replace(world_size=ranks).resume(loader.cursor)
    steps = [(epoch, step) for epoch in range(loader.cursor.epoch, 3) for step in rest.steps(epoch)]
    last = [step + 1 == rest.steps(epoch).stop for epoch, step in steps]
    ends = [number for number, is_last in enumerate(last, 1) if is_last]
    for rank in range(ranks):
        loader = PlanLoader(range(43), plan, rank=rank, world_size=ranks, compare=False)
        kept = (tmp_path / "kept.pt").read_bytes()
        read, ended = trained(tmp_path, loader, resume=True)
        (tmp_path / "kept.pt").write_bytes(kept)
        assert [rest.batch(epoch, step=step, rank=rank).tolist() for epoch, step in steps] == read
        assert ends == ended


def test_the_pages_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after three epochs; its last line but one, once it is no comment, resumes."""
    (block,) = (each for each in blocks("docs/trainers.md") if "def end_epoch" in each)
    monkeypatch.chdir(tmp_path)
    plan, model = ip.Plan(ip.Shuffle(1003, seed=4), batch_size=8), torch.nn.Linear(1, 1)
    read: list[int] = []
    names = {
        "dataset": range(1003),
        "plan": plan,
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "train_step": lambda _, batch: read.extend(batch.tolist()),
    }
    exec(block, globals() | names)  # noqa: S102
    one = plan.replace(world_size=1)
    steps = [(epoch, step) for epoch in range(3) for step in one.steps(epoch)]
    expected = [one.batch(epoch, step=step, rank=0).tolist() for epoch, step in steps]
    assert sum(expected, []) == read
    kept = min(tmp_path.glob("run/*.pt"))
    read.clear()
    resuming = block.replace("# Checkpoint.load", "Checkpoint.load").replace(
        "run/checkpoint_200.pt", str(kept)
    )
    exec(resuming, globals() | names)  # noqa: S102
    (stop,) = re.findall(r"\d+", kept.name)
    assert sum(expected[int(stop) :], []) == read
