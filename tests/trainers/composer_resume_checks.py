"""Composer stopped on two ranks and resumed on one, two and three; run as its other checks are."""

from collections import Counter
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

pytestmark = pytest.mark.composer

IMPORTED_BY_RANKS = ("tests.runs.frameworks.composer_trainer", "torchmetrics", "torch._dynamo")

EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(97, seed=5), batch_size=5)
# passes of 7, 13 and 13 steps on two ranks: Composer alone would cut all to 7
LONGER = PLAN.replace(batch_size=[ip.Phase(at=0, size=8), ip.Phase(at=1, size=4)])
# a plan, the number of workers, and "epoch, batch in epoch" of its checkpoints: in mid-pass, after
# a pass's last batch, at its end, and after the run's last batch
RUNS = {
    "plain": (PLAN, 0, ("1, 5", "0, 10", "2, 0", "2, 10")),
    "workers": (PLAN, 2, ("1, 5", "2, 0")),
    "longer": (LONGER, 0, ("1, 5", "1, 0", "1, 13")),
    "carry": (PLAN.replace(remainder="carry"), 0, ("1, 5", "2, 0")),
}
WITHOUT = (
    "a resume under composer.Trainer on another number of ranks must load the loader's state; "
    "got a checkpoint of 2 ranks on {world_size}, whose steps Composer would skip by counting; "
    "use Trainer(callbacks=[indexplan_torch.composer.KeepState()]), in the run that saves too"
)
IN_PARTS = (
    "an evaluation's plan must have sub_epochs=1 under Composer, as each evaluation is one pass; "
    "got sub_epochs=3; use plan.replace(sub_epochs=1)"
)
SHARED = (
    "eval_dataloader must be a loader of its own; got the training's, whose pass it would "
    "interrupt; use another PlanLoader(dataset, plan)"
)
NOT_OURS = (
    "train_dataloader must be a PlanLoader, for KeepState; got DataLoader; use PlanLoader(dataset, "
    "plan)"
)


def leg(folder: str, saving: bool) -> dict[str, Any]:
    """Save each run on two ranks, or only resume its checkpoints on others."""
    import torch
    from composer import Event, Trainer
    from composer.models import ComposerModel
    from torch.utils.data import DataLoader
    from torchmetrics import SumMetric

    from indexplan_torch import PlanBatchSampler, PlanLoader
    from indexplan_torch.composer import KeepState

    dataset = torch.arange(97.0)

    class Model(ComposerModel):
        """A line that notes what it is trained on, and which random numbers it draws."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.seen: dict[str, list[Any]] = {"batches": [], "drawn": [], "evaluated": []}

        def forward(self, batch: Any) -> Any:
            self.seen["batches" if self.training else "evaluated"].append(batch.int().tolist())
            if self.training:
                self.seen["drawn"].append(torch.rand(1).item())
            return self.line(batch[:, None] / 97)[:, 0]

        def loss(self, outputs: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
            return ((outputs - batch / 97) ** 2).mean()

        def eval_forward(self, batch: Any, outputs: Any = None) -> Any:
            return self.forward(batch)

        def get_metrics(self, is_train: bool = False) -> dict[str, Any]:
            return {} if is_train else {"sum": SumMetric()}

        def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
            metric.update(batch)

    def trained(
        plan: ip.Plan, num_workers: int = 0, *, keep: bool = True, fits: Any = ({},), **options: Any
    ) -> Any:
        loader = PlanLoader(dataset, plan, num_workers=num_workers)
        options = {
            "train_dataloader": loader,
            "max_duration": f"{EPOCHS}ep",
            "callbacks": [KeepState()] if keep else [],
            **options,
        }
        model = Model()
        trainer = Trainer(model=model, progress_bar=False, **options)
        try:
            for each in fits:
                trainer.fit(**each)
            return model.seen
        except ip.IndexPlanError as error:
            return str(error)
        finally:
            trainer.close()

    seen: dict[str, Any] = {}
    for name, (plan, num_workers, places) in RUNS.items():

        def due(state: Any, event: Any, places: Any = places) -> bool:
            time = state.timestamp
            here = f"{int(time.epoch)}, {int(time.batch_in_epoch)}" in places
            kinds = {Event.BATCH_CHECKPOINT, Event.EPOCH_CHECKPOINT}
            return here and event in kinds

        place = f"{folder}/{name}"
        if saving:
            files = {"save_folder": place, "save_filename": "{epoch}, {batch_in_epoch}.pt"}
            seen[name] = trained(plan, num_workers, save_interval=due, **files)
        for saved in places:
            seen[f"{name} {saved}"] = trained(plan, num_workers, load_path=f"{place}/{saved}.pt")
    seen["ledger"] = f"{folder}/run.ledger"
    kept: dict[str, Any] = {"train_dataloader": PlanLoader(dataset, PLAN, ledger=seen["ledger"])}
    if saving:
        kept |= {"save_folder": f"{folder}/kept", "save_filename": "{batch}.pt"}
        seen["kept"] = trained(PLAN, save_interval="5ba", **kept)
    else:
        seen["kept"] = trained(PLAN, load_path=f"{folder}/kept/15.pt", **kept)
    middle, end = f"{folder}/plain/1, 5.pt", f"{folder}/plain/2, 0.pt"
    seen["without"] = [trained(PLAN, keep=False, load_path=path) for path in (middle, end)]
    seen["fit twice"] = trained(
        PLAN, load_path=middle, max_duration=None, fits=({"duration": "2ba"}, {"duration": "1ep"})
    )
    shuffled = ip.Plan(ip.Shuffle(97, seed=6), batch_size=7)
    in_parts = shuffled.replace(sub_epochs=3)
    once: dict[str, Any] = {"max_duration": "2ep"}
    seen["evaluated"] = trained(PLAN, eval_dataloader=PlanLoader(dataset, shuffled), **once)
    seen["refused"] = [
        trained(PLAN, keep=keep, eval_dataloader=PlanLoader(dataset, in_parts), **once)
        for keep in (True, False)
    ]
    both = PlanLoader(dataset, PLAN)
    sampled = DataLoader(dataset, batch_sampler=PlanBatchSampler(PLAN))
    seen["refused"] += [
        trained(PLAN, train_dataloader=both, eval_dataloader=both, **once),
        trained(PLAN, train_dataloader=sampled, device_train_microbatch_size=5, **once),
    ]
    return seen


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What every rank saw: of the two that saved, and of those that went on."""
    folder = str(tmp_path_factory.mktemp("saved"))
    function = "tests.trainers.composer_resume_checks:leg"
    return {
        world_size: run_ranks(function, world_size, folder, world_size == 2, timeout=600)
        for world_size in (2, 1, 3)
    }


def num_batches(name: str, place: str) -> int:
    """The batches on two ranks before a checkpoint."""
    epoch, step = map(int, place.split(", "))
    plan = RUNS[name][0].replace(world_size=2)
    return sum(plan.steps(before).stop for before in range(epoch)) + step


def passes(plan: ip.Plan, epochs: Any, rank: int) -> list[list[int]]:
    """The batches that a rank has to receive in some epochs."""
    return [batch.tolist() for epoch in epochs for batch in plan.batches(epoch, rank=rank)]


@pytest.mark.parametrize("name", RUNS)
def test_training_is_the_plans(worlds: dict[int, list[Any]], name: str) -> None:
    """Every pass is read to its end, be it longer than the first."""
    for rank, result in enumerate(worlds[2]):
        plan = RUNS[name][0].replace(world_size=2)
        assert passes(plan, range(EPOCHS), rank) == result[name]["batches"]


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("name", RUNS)
def test_resume_reads_each_sample_once(
    worlds: dict[int, list[Any]], name: str, world_size: int
) -> None:
    """Both legs together read the whole of every epoch, wherever the first was stopped."""
    for place in RUNS[name][2]:
        batches = num_batches(name, place)
        read = [b for result in worlds[2] for b in result[name]["batches"][:batches]]
        read += [b for each in worlds[world_size] for b in each[f"{name} {place}"]["batches"]]
        times = Counter(index for batch in read for index in batch)
        if name == "carry":  # its last step may reach into the next epoch
            times = Counter({index: min(n, EPOCHS) for index, n in times.items()})
        assert dict.fromkeys(range(97), EPOCHS) == times, place


@pytest.mark.parametrize("name", RUNS)
def test_resume_on_as_many_ranks_is_the_same_run(worlds: dict[int, list[Any]], name: str) -> None:
    """On as many ranks the second leg is the first one's rest, random numbers included."""
    for result in worlds[2]:
        for place in RUNS[name][2]:
            rest = slice(num_batches(name, place), None)
            for what in ("batches", "drawn"):
                assert result[name][what][rest] == result[f"{name} {place}"][what]


def test_a_ledger_is_kept(worlds: dict[int, list[Any]]) -> None:
    """Two ranks and then three have read what it says; what was past the checkpoint is void."""
    ledger = ip.Ledger(worlds[2][0]["ledger"])
    assert ledger.verify().ok
    for rank, result in enumerate(worlds[2]):
        read = [ledger.batch(step, rank).tolist() for step in range(15)]
        assert result["kept"]["batches"][:15] == read
    for rank, result in enumerate(worlds[3]):
        read = [ledger.batch(step, rank).tolist() for step in range(15, ledger.step)]
        assert result["kept"]["batches"] == read
    assert [EPOCHS] * 97 == ledger.seen(range(97)).tolist()


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_without_the_callback(worlds: dict[int, list[Any]], world_size: int) -> None:
    """Without it, another number of ranks is refused, with its name; the same reads the plan."""
    for rank, result in enumerate(worlds[world_size]):
        if world_size == 2:
            expected = passes(PLAN.replace(world_size=2), range(EPOCHS), rank)
            assert [expected[15:], expected[20:]] == [each["batches"] for each in result["without"]]
        else:
            assert [WITHOUT.format(world_size=world_size)] * 2 == result["without"]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_fit_once_more(worlds: dict[int, list[Any]], world_size: int) -> None:
    """A second `fit` goes on where the first ended, after a resume as well."""
    saved = PLAN.replace(world_size=2).cursor(1, step=5)
    plan = PLAN.replace(world_size=world_size).resume(saved)
    for rank, result in enumerate(worlds[world_size]):
        assert passes(plan, [1], rank) == result["fit twice"]["batches"]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_evaluation(worlds: dict[int, list[Any]], world_size: int) -> None:
    """Each evaluation reads the same epoch whole; what would not is refused, with or without it."""
    plan = ip.Plan(ip.Shuffle(97, seed=6), world_size=world_size, batch_size=7)
    for rank, result in enumerate(worlds[world_size]):
        assert passes(plan, [0, 0], rank) == result["evaluated"]["evaluated"]
        assert [IN_PARTS, IN_PARTS, SHARED, NOT_OURS] == result["refused"]
