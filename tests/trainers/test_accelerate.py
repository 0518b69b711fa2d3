"""Accelerate: plans in prepared loaders, with default settings, two ranks over gloo."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("accelerate",)

EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5)
ON_CPU = {"ACCELERATE_USE_CPU": "true"}  # as `accelerate launch --cpu` sets it
NOT_OURS = (
    "a PlanLoader must not be given to accelerator.prepare, which would deal its batches out "
    "again; got one of this rank; use indexplan_torch.accelerate.prepare(accelerator, "
    "PlanLoader(dataset, plan)); under transformers.Trainer, use "
    "indexplan_torch.transformers.use_plan(trainer, plan)"
)
NOT_SKIPPED = (
    "a PlanLoader must hand its batches to the loop itself once it is resumed or prepared, or has "
    "a ledger; got another loader around its batch sampler, such as that of skip_first_batches; "
    "leave that out, as load_state_dict(state) and plan.resume(cursor) skip what was read"
)
NOT_COUNTED = (
    "a sampler must not be asked for a cursor or step_size inside a pass, as it knows what was "
    "drawn, not what the loop has received; got a pass that another loader draws; loop over a "
    "PlanLoader, or use the state of torchdata's StatefulDataLoader; at the end of a pass, name "
    "the next with set_epoch first"
)


class Moved:
    """A batch that records where it was moved to."""

    def __init__(self, samples: list[Any]) -> None:
        self.indices = [int(sample) for sample in samples]
        self.device = "nowhere"

    def to(self, device: Any, non_blocking: bool = False) -> "Moved":
        self.device = str(device)
        return self


def epochs(loader: Any, numbers: Any) -> list[list[int]]:
    """Iterate with set_epoch before each pass; return the batches."""
    batches = []
    for number in numbers:
        loader.set_epoch(number)
        batches += [batch.int().tolist() for batch in loader]
    return batches


def prepared_loader(num_workers: int, folder: str) -> dict[str, Any]:
    """Everything that a PlanLoader goes through in our prepare."""
    import accelerate
    import torch
    from accelerate import Accelerator

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import gather, prepare

    accelerator = Accelerator(gradient_accumulation_steps=2)
    dataset = torch.arange(103.0)
    seen: dict[str, Any] = {}

    def fresh(plan: ip.Plan = PLAN, **options: Any) -> Any:
        loader = PlanLoader(dataset, plan, num_workers=num_workers, **options)
        return prepare(accelerator, loader)

    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = PlanLoader(dataset, PLAN, num_workers=num_workers)
    model, optimizer, prepared = prepare(accelerator, model, optimizer, loader)
    seen["types"] = [type(each).__name__ for each in (model, optimizer, prepared)]
    seen["again"] = accelerator.prepare(prepared) is prepared
    seen["length"] = len(prepared)
    seen["fit"], seen["synced"], seen["states"], seen["held"] = [], [], [], []
    for epoch in range(EPOCHS):
        prepared.set_epoch(epoch)
        for step, batch in enumerate(prepared):
            with accelerator.accumulate(model):
                seen["fit"].append(batch.int().tolist())
                accelerator.backward(model(batch[:, None]).sum())
                optimizer.step()
                optimizer.zero_grad()
                seen["synced"].append(accelerator.sync_gradients)
            seen["states"].append(prepared.state_dict()["cursor"])
            for each in (prepared, loader):
                seen["held"].append([each.step_size, each.cursor.to_dict()])
            if (epoch, step) == (1, 3):
                accelerator.save_state(f"{folder}/middle")
        if epoch == 0:
            accelerator.save_state(f"{folder}/end")
    seen["active"] = accelerator.gradient_state.in_dataloader

    accelerator.load_state(f"{folder}/end")
    seen["from the start"] = epochs(prepared, [0, 1, 2])  # of which the first is over
    for name, numbers in {"middle": [1, 2], "end": [1, 2]}.items():
        accelerator.load_state(f"{folder}/{name}")
        seen[f"loaded {name}"] = epochs(prepared, numbers)
        accelerator.load_state(f"{folder}/{name}")
        seen[f"loaded {name}, unset"] = [b.int().tolist() for _ in numbers for b in prepared]

    prepared = fresh()
    prepared.set_epoch(0)
    next(iter(prepared))
    seen["broken off"] = [b.int().tolist() for _ in range(2) for b in prepared]

    prepared = fresh(PLAN.replace(sub_epochs=3))
    prepared.set_epoch(5)  # sub-epoch 2 of epoch 1
    seen["sub_epoch"] = [batch.int().tolist() for batch in prepared]

    prepared = fresh(collate_fn=Moved)
    seen["moved"] = [[batch.indices, batch.device] for batch in prepared]
    seen["device"] = str(accelerator.device)

    spread, padded = fresh(), fresh(PLAN.replace(remainder="pad"))
    seen["gathered"] = [gather(accelerator, [b, b.sum()]) for b in spread]
    seen["gathered"] = [[rows.int().tolist() for rows in pair] for pair in seen["gathered"]]
    seen["for metrics"] = [accelerator.gather_for_metrics(b).int().tolist() for b in padded]

    loader = PlanLoader(dataset, PLAN, num_workers=num_workers)
    loader.set_epoch(1)
    seen["skipped"] = []
    asked: list[Any] = [lambda: loader.step_size, lambda: loader.cursor, loader.state_dict]
    for batch in accelerate.skip_first_batches(loader, 4):
        seen["skipped"].append([batch.int().tolist(), *map(said, asked)])
    loader.set_epoch(2)
    seen["after it"] = [[batch.int().tolist(), loader.step_size] for batch in loader]

    again: list[Any] = [
        lambda: accelerator.prepare(PlanLoader(dataset, PLAN)),
        lambda: next(iter(accelerator.skip_first_batches(fresh(), 4))),
        lambda: next(iter(accelerate.skip_first_batches(fresh(), 0))),
    ]
    seen["refused"] = [said(each) for each in again]
    return seen


def said(ask: Any) -> Any:
    """What is answered; as JSON has it, or how it is refused."""
    try:
        answer = ask()
    except ip.IndexPlanError as error:
        return str(error)
    answer = answer["cursor"] if isinstance(answer, dict) else answer
    return answer.to_dict() if isinstance(answer, ip.Cursor) else answer


def every(folder: str) -> dict[str, Any]:
    """All of it without and with workers, in one process."""
    from accelerate import Accelerator

    seen = {str(num_workers): prepared_loader(num_workers, folder) for num_workers in (0, 2)}
    Accelerator().end_training()
    return seen


def batches(plan: ip.Plan, epochs: Any, rank: int) -> list[list[int]]:
    """The batches that a rank has to receive in some epochs."""
    return [batch.tolist() for epoch in epochs for batch in plan.batches(epoch, rank=rank)]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two ranks saw of it all."""
    folder = str(tmp_path_factory.mktemp("saved"))
    return run_ranks("tests.trainers.test_accelerate:every", 2, folder, **ON_CPU)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_prepared_loader(ranks: list[Any], num_workers: int) -> None:
    """A PlanLoader in our prepare: the plan, the device, the gradient state and the saved state."""
    plan = PLAN.replace(world_size=2)
    num_steps = plan.steps(0).stop
    middle = plan.resume(plan.cursor(1, step=4))
    padded = plan.replace(remainder="pad")
    for rank, result in enumerate(ranks):
        seen = result[str(num_workers)]
        cut = plan.replace(sub_epochs=3)
        both = [[plan.batch(0, step=t, rank=r) for r in range(2)] for t in range(num_steps)]
        device = seen.pop("device")
        assert device.startswith("cpu")
        expected = {
            "types": ["DistributedDataParallel", "AcceleratedOptimizer", "PreparedLoader"],
            "again": True,
            "length": num_steps,
            "fit": batches(plan, range(EPOCHS), rank),
            "synced": EPOCHS * [t % 2 == 1 or t == num_steps - 1 for t in range(num_steps)],
            "states": [
                plan.cursor(epoch, step=step + 1).to_dict()
                for epoch in range(EPOCHS)
                for step in range(num_steps)
            ],
            "held": [
                [plan.step_size(epoch, step=step), plan.cursor(epoch, step=step + 1).to_dict()]
                for epoch in range(EPOCHS)
                for step in range(num_steps)
                for _ in ("prepared", "loader")
            ],
            "active": False,
            "from the start": batches(plan, [1, 2], rank),
            "loaded middle": batches(middle, [1, 2], rank),
            "loaded middle, unset": batches(middle, [1, 2], rank),
            "loaded end": batches(plan, [1, 2], rank),
            "loaded end, unset": batches(plan, [1, 2], rank),
            "skipped": [
                [plan.batch(1, step=step, rank=rank).tolist(), *3 * [NOT_COUNTED]]
                for step in range(4, num_steps)
            ],
            "after it": [
                [plan.batch(2, step=step, rank=rank).tolist(), plan.step_size(2, step=step)]
                for step in range(num_steps)
            ],
            "broken off": batches(plan, [0, 1], rank),
            "sub_epoch": [batch.tolist() for batch in cut.batches(1, 2, rank=rank)],
            "moved": [[batch, device] for batch in batches(plan, [0], rank)],
            "gathered": [
                [[*pair[0].tolist(), *pair[1].tolist()], [int(each.sum()) for each in pair]]
                for pair in both
            ],
            "for metrics": [
                [
                    index
                    for r in range(2)
                    for index in padded.batch(0, step=t, rank=r).tolist()[
                        : padded.units(0, step=t, rank=r).num_valid
                    ]
                ]
                for t in range(padded.steps(0).stop)
            ],
            "refused": [NOT_OURS, NOT_SKIPPED, NOT_SKIPPED],
        }
        assert expected == seen
