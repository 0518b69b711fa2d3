"""A node dies under Ray Train's elastic training, and another one joins: no sample is lost."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.live.elastic import (
    DIES_AFTER,
    JOINED_AFTER,
    KILLED,
    NODES,
    PLAN,
    SAMPLES,
    check,
    last,
    train,
)
from tests.trainers.ranks import run_ranks

pytestmark = pytest.mark.ray

PATIENCE = 900  # a world is given START_SECONDS to start, and Ray tries again what takes longer
START_SECONDS = 180  # it waits as long for a dead node, which it hears of after up to 20
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}


def worker(config: dict[str, Any]) -> None:
    """Be a rank, on any node."""
    import ray
    import ray.train

    from indexplan_torch import PlanLoader

    def save(state: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as new:
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                torch.save(state, Path(new, "run.pt"))
                checkpoint = ray.train.Checkpoint.from_directory(new)
            ray.train.report({}, checkpoint=checkpoint)

    saved: dict[str, Any] = {}
    if (checkpoint := ray.train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder, "run.pt"))
    node = ray.get_runtime_context().get_node_id()
    loader = PlanLoader(torch.arange(SAMPLES), PLAN)
    train(Path(config["folder"]), node, loader, saved, save)


def wait(until: Callable[[], bool]) -> None:
    """Wait for what ranks write."""
    end = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > end:
            os._exit(1)  # Ray would wait without end
        time.sleep(0.05)  # it looks again


def change(folder: Path, cluster: Any, nodes: dict[str, Any]) -> None:
    """Kill a node in the middle of a step, and add another one later."""
    wait(lambda: all(last(folder, node)[1:] == [NODES, DIES_AFTER] for node in nodes))
    dead = max(nodes)
    os.kill(last(folder, dead)[0], signal.SIGKILL)
    cluster.remove_node(nodes.pop(dead))  # of which Ray hears at once, and not after a minute
    (folder / KILLED).touch()
    wait(lambda: all(last(folder, node)[1:] == [NODES - 1, JOINED_AFTER] for node in nodes))
    cluster.add_node(**NODE)


def drive(folder: str) -> list[Any]:
    """Train on nodes of this machine; return what was read, by the last checkpoint."""
    import ray
    from ray.cluster_utils import Cluster
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    # a short path of its own, as Ray's sockets have to fit in 107 bytes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as short:
        os.environ["RAY_TMPDIR"] = short
        Path(short, "ray").mkdir()
        head = {
            "num_cpus": 0,
            "include_dashboard": False,
            "node_ip_address": "127.0.0.1",
            "object_store_memory": 100 * 2**20,
        }
        cluster = Cluster(initialize_head=True, head_node_args=head)
        nodes = {node.node_id: node for node in (cluster.add_node(**NODE) for _ in range(NODES))}
        ray.init(address=cluster.address)
        trainer = TorchTrainer(
            worker,
            train_loop_config={"folder": folder},
            scaling_config=ScalingConfig(
                num_workers=(1, NODES), elastic_resize_monitor_interval_s=1
            ),
            run_config=RunConfig(
                storage_path=f"{folder}/storage", failure_config=FailureConfig(max_failures=3)
            ),
        )
        with ThreadPoolExecutor(1) as pool:
            fit = pool.submit(trainer.fit)
            change(Path(folder), cluster, nodes)  # here, as a node is started with signals
            result = fit.result()
        with result.checkpoint.as_directory() as last:
            read: list[Any] = torch.load(Path(last, "run.pt"))["read"]
        ray.shutdown()
        cluster.shutdown()
    return read


def test_a_node_dies_and_another_joins(tmp_path: Path) -> None:
    """Of the checkpoint that a run ends with, each epoch reads each sample once."""
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's word for nodes that stay on loopback
        "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(START_SECONDS),
        "HOME": str(tmp_path),  # no files elsewhere
    }
    drive = "tests.live.test_ray:drive"
    (read,) = run_ranks(drive, 1, str(tmp_path), timeout=3 * PATIENCE, **environment)
    check([(world, samples) for world, samples in read])
