"""Ray Train: PlanLoaders, by themselves and in prepare_data_loader, two workers on this machine."""

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan_torch.versions import TESTED
from tests.trainers.ranks import run_ranks

EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5)
REFUSED = (
    "a PlanLoader must be read by the loop itself, as its state counts what is drawn; got "
    "ray.train.torch.prepare_data_loader, which draws one batch ahead; leave that out, and write "
    "batch.to(ray.train.torch.get_device()) in the loop"
)


def worker(config: dict[str, Any]) -> None:
    """One Ray worker: fit, keep states, go on from them; report what it saw as a checkpoint."""
    import ray.train
    import ray.train.torch
    import torch

    from indexplan_torch import PlanLoader

    model = ray.train.torch.prepare_model(torch.nn.Linear(1, 1))
    seen: dict[str, Any] = {"type": type(model).__name__}

    def one_pass(loader: Any) -> list[list[int]]:
        return [batch.int().tolist() for batch in loader]

    device = ray.train.torch.get_device()
    for num_workers in (0, 2):

        def fresh(num_workers: int = num_workers) -> PlanLoader:
            return PlanLoader(torch.arange(103.0), PLAN, num_workers=num_workers)

        here: dict[str, Any] = {"fit": [], "states": [], "held": [], "resumed": {}}
        loader = fresh()
        here["length"] = len(loader)
        for epoch in range(EPOCHS):
            loader.sampler.set_epoch(epoch)  # as Ray's guide has it
            for batch in loader:
                here["fit"].append(batch.int().tolist())
                here["states"].append(loader.state_dict()["cursor"])
                here["held"].append([loader.step_size, loader.cursor.to_dict()])
                model(batch.to(device, non_blocking=True)[:, None]).sum().backward()
        here["at the end"] = loader.state_dict()["cursor"]
        next(iter(loader))  # broken off, it starts again
        here["broken off"] = one_pass(loader)
        for name in ("middle", "end"):
            loader = fresh()
            loader.load_state_dict(config[name])
            assert config[name] == loader.state_dict()
            here["resumed"][name] = one_pass(loader) + one_pass(loader)

        plain = fresh()
        try:
            one_pass(ray.train.torch.prepare_data_loader(plain))
        except ip.IndexPlanError as error:
            here["refused"] = str(error)
        here["afterwards"] = one_pass(plain)
        seen[str(num_workers)] = here

        def recorded(num_workers: int = num_workers) -> Any:
            ledger = f"{config['folder']}/{num_workers}.ledger"
            return PlanLoader(torch.arange(103.0), PLAN, num_workers=num_workers, ledger=ledger)

        loader = recorded()
        one_pass(loader)
        for step, _ in enumerate(loader, 1):
            if step == 4:
                state = loader.state_dict()
            if step == 6:
                break
        loader = recorded()
        loader.load_state_dict(state)
        one_pass(loader)
    rank = ray.train.get_context().get_world_rank()
    Path(config["folder"], f"{rank}.json").write_text(json.dumps(seen))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ray.train.Checkpoint.from_directory(folder)
        ray.train.report({"rank": rank}, checkpoint=checkpoint if rank == 0 else None)


def train(folder: str, states: dict[str, Any]) -> None:
    """Start Ray on this machine, and a TorchTrainer of two workers on it."""
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    trainer = TorchTrainer(
        worker,
        train_loop_config={"folder": folder, **states},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=f"{folder}/storage"),
    )
    # a short path of its own, as Ray's sockets have to fit in 107 bytes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as short:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            _node_ip_address="127.0.0.1",
            _temp_dir=short,
        )
        trainer.fit()
        ray.shutdown()


def test_ray_train_keeps_the_plan(tmp_path: Path) -> None:
    """Fit and resumes read the plan, and states count what the loop has received.

    Ray's own wrapper draws a batch ahead, so a state would be one ahead: it may not draw.
    """
    plan = PLAN.replace(world_size=2)
    cursors = {"middle": plan.cursor(1, step=4), "end": plan.cursor(0, step=plan.steps(0).stop)}
    states = {
        name: {"version": 1, "cursor": cursor.to_dict(), "pass": cursor.epoch}
        for name, cursor in cursors.items()
    }
    environment = {"RAY_USAGE_STATS_ENABLED": "0", "HOME": str(tmp_path)}  # no files elsewhere
    run_ranks("tests.trainers.test_ray:train", 1, str(tmp_path), states, **environment)
    for num_workers in (0, 2):  # steps past the state that was loaded are void
        ledger = ip.Ledger(tmp_path / f"{num_workers}.ledger")
        assert ledger.verify().ok
        assert (2 * plan.steps(0).stop, 2) == (ledger.step, ledger.account().num_void_steps)
        for rank in range(2):
            read = [ledger.batch(step, rank).tolist() for step in range(ledger.step)]
            assert [b.tolist() for epoch in (0, 1) for b in plan.batches(epoch, rank=rank)] == read
    for rank in range(2):
        seen = json.loads((tmp_path / f"{rank}.json").read_text())
        assert seen.pop("type") == "DistributedDataParallel"
        fit = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        steps = plan.steps(0).stop
        places = [plan.cursor(e, step=t + 1).to_dict() for e in range(EPOCHS) for t in range(steps)]
        expected = {
            "length": steps,
            "fit": fit,
            "states": places,
            "held": [
                [plan.step_size(epoch, step=step), plan.cursor(epoch, step=step + 1).to_dict()]
                for epoch in range(EPOCHS)
                for step in range(steps)
            ],
            "broken off": [b.tolist() for b in plan.batches(EPOCHS, rank=rank)],
            "at the end": places[-1],
            "resumed": {"middle": fit[steps + 4 :], "end": fit[steps:]},
            "refused": REFUSED,
            "afterwards": [b.tolist() for b in plan.batches(0, rank=rank)],
        }
        assert {"0": expected, "2": expected} == seen


def test_the_version_is_the_one_of_the_table() -> None:
    """What runs here is what docs/trainers.md calls tested."""
    assert TESTED["ray"][1] == version("ray")
