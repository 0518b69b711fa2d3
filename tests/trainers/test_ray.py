"""Ray Train: PlanLoaders, by themselves and in prepare_data_loader, two workers on this machine."""

import faulthandler
import json
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

pytestmark = pytest.mark.ray

PATIENCE = 300  # seconds after which a worker prints where its threads are, and ends
EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5)
REFUSED = (
    "a PlanLoader must be read by the loop itself, as its state counts what is drawn; got "
    "ray.train.torch.prepare_data_loader, which draws one batch ahead; leave that out, and write "
    "batch.to(ray.train.torch.get_device()) in the loop"
)


def worker(config: dict[str, Any]) -> None:
    """One Ray worker: fit with a ledger, leave it, go on from a state; tell what it saw."""
    import ray.train
    import ray.train.torch
    import torch

    from indexplan_torch import PlanLoader

    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    # Ray's workers have many threads; what one forks can hang (CPython issue 112275).
    multiprocessing.set_start_method("forkserver")
    multiprocessing.set_forkserver_preload(["torch"])
    model = ray.train.torch.prepare_model(torch.nn.Linear(1, 1))
    seen: dict[str, Any] = {"type": type(model).__name__}
    device = ray.train.torch.get_device()
    for num_workers in (0, 2):

        def made(num_workers: int = num_workers, **options: Any) -> PlanLoader:
            return PlanLoader(torch.arange(103.0), PLAN, num_workers=num_workers, **options)

        def one_pass(loader: Any) -> list[list[int]]:
            return [batch.int().tolist() for batch in loader]

        here: dict[str, Any] = {"fit": [], "states": []}
        ledger = f"{config['folder']}/{num_workers}.ledger"
        loader = made(ledger=ledger)
        for epoch in range(EPOCHS):
            loader.sampler.set_epoch(epoch)  # as Ray's guide has it
            for step, batch in enumerate(loader, 1):
                here["fit"].append(batch.int().tolist())
                here["states"].append([loader.state_dict()["cursor"], loader.step_size])
                model(batch.to(device, non_blocking=True)[:, None]).sum().backward()
                if (epoch, step) == (1, 4):
                    state = loader.state_dict()
        loader = made(ledger=ledger)  # what was read past the state becomes void
        loader.load_state_dict(state)
        here["resumed"] = one_pass(loader)
        loader.state_dict()  # writes the ledger to its end
        plain = made()
        try:
            one_pass(ray.train.torch.prepare_data_loader(plain))
        except ip.IndexPlanError as error:
            here["refused"] = str(error)
        here["afterwards"] = one_pass(plain)
        seen[str(num_workers)] = here
    rank = ray.train.get_context().get_world_rank()
    Path(config["folder"], f"{rank}.json").write_text(json.dumps(seen))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = ray.train.Checkpoint.from_directory(folder)
        ray.train.report({"rank": rank}, checkpoint=checkpoint if rank == 0 else None)


def train(folder: str) -> None:
    """Start Ray on this machine, and a TorchTrainer of two workers on it."""
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    trainer = TorchTrainer(
        worker,
        train_loop_config={"folder": folder},
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
    plan, steps = PLAN.replace(world_size=2), PLAN.replace(world_size=2).steps(0).stop
    environment = {"RAY_USAGE_STATS_ENABLED": "0", "HOME": str(tmp_path)}  # no files elsewhere
    run_ranks(f"{__name__}:train", 1, str(tmp_path), **environment)
    places = [(epoch, step) for epoch in range(EPOCHS) for step in range(steps)]
    after = [plan.cursor(epoch, step=step + 1).to_dict() for epoch, step in places]
    sizes = [plan.step_size(epoch, step=step) for epoch, step in places]
    ledgers = [ip.Ledger(tmp_path / f"{num_workers}.ledger") for num_workers in (0, 2)]
    for ledger in ledgers:
        assert ledger.verify().ok
        assert (2 * steps, 2 * steps - 4) == (ledger.step, ledger.account().num_void_steps)
    for rank in range(2):
        seen = json.loads((tmp_path / f"{rank}.json").read_text())
        assert seen.pop("type") == "DistributedDataParallel"
        fit = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        expected = {
            "fit": fit,
            "states": [list(each) for each in zip(after, sizes, strict=True)],
            "resumed": fit[steps + 4 : 2 * steps],
            "refused": REFUSED,
            "afterwards": fit[:steps],
        }
        assert {"0": expected, "2": expected} == seen
        for ledger in ledgers:
            read = [ledger.batch(step, rank).tolist() for step in range(ledger.step)]
            assert fit[: 2 * steps] == read
