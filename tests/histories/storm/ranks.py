"""What the ranks of a storm do: read, note each sample, save the state every few steps."""

from __future__ import annotations

import json
import multiprocessing
import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import s3fs

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet, open_tar
from tests.histories.storm.truth import RECORD

PAUSE, STALL = 0.05, 1.5  # seconds; a run has longer ones

s3fs.S3FileSystem.retries = 2  # of 5, so that more answers reach indexplan


def plan_of(shards: ip.Shards, global_batch: int) -> ip.Plan:
    """Return a plan that reads few shards at a time."""
    order = ip.ShardShuffle(shards, lanes=2, stripe=2 * global_batch, seed=5)
    return ip.Plan(order, global_batch_size=global_batch, remainder="drop")


def look(path: str, whole_files: bool) -> dict[str, Any]:
    """Return the shards of a store; compile what ranks need, which they are not forked for."""
    shards = ip.shard_sizes(path, whole_files=whole_files)
    return {"shards": shards.to_json(), "num_samples": shards.num_samples}


def resume_a_step_early() -> None:
    """Let loaders read their last step once more: a fault, to show that the count finds it."""
    load = PlanLoader.load_state_dict

    def early(self: PlanLoader, state: dict[str, Any]) -> None:
        cursor = ip.Cursor.from_dict(state["cursor"])
        step = max(0, cursor.step - 1)
        position = cursor.position // cursor.step * step if cursor.step else cursor.position
        load(self, {**state, "cursor": replace(cursor, step=step, position=position).to_dict()})

    PlanLoader.load_state_dict = early  # type: ignore[method-assign]


def read(text: str) -> None:
    """Read the rest of a run, or until this is killed; what it is refused for goes to a file."""
    job = json.loads(text)
    if job["fault"]:
        resume_a_step_early()
    try:
        _read(job)
    except ip.IndexPlanError as error:
        Path(job["refused"]).write_text(str(error))


def _read(job: dict[str, Any]) -> None:
    shards = ip.Shards.from_json(job["shards"], path=job["place"])
    dataset = ShardedDataset(
        shards,
        open_tar if shards.files[0].endswith(".tar") else open_parquet,
        cache_dir=job["cache_dir"],
        cache_bytes=job["cache_bytes"],
        ranks_per_node=job["ranks_per_node"],
        num_epochs=job["num_epochs"],
        stall_timeout=STALL,
        **job["options"],
    )
    dataset.settings = dataset.settings._replace(pause=PAUSE)
    loader = PlanLoader(
        dataset,
        plan_of(shards, job["global_batch"]),
        rank=job["rank"],
        world_size=job["world_size"],
        num_workers=job["workers"],
    )
    if job["state"] is not None:
        loader.load_state_dict(job["state"])
    done, log = job["done"], os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for epoch in range(loader.cursor.epoch, job["num_epochs"]):
        loader.set_epoch(epoch)
        told = False
        for batch in loader:
            if not told:
                pids = [child.pid for child in multiprocessing.active_children()]
                _publish(Path(job["children"]), json.dumps(pids))
                told = True
            ids = [int(each) for each in batch["id"]]
            pairs = zip(ids, batch["value"], strict=True)
            os.write(
                log,
                b"".join(RECORD.pack(done, epoch, id_, zlib.crc32(value)) for id_, value in pairs),
            )
            done += 1
            if done % job["every"] == 0:
                state = json.dumps(loader.state_dict(), sort_keys=True)
                _publish(Path(f"{job['states']}-{done}.json"), state)
    _publish(Path(job["finished"]), json.dumps(done))


def _publish(path: Path, text: str) -> None:
    """Write a file that is whole as soon as it has its name."""
    hidden = path.with_suffix(".tmp")
    hidden.write_text(text)
    hidden.replace(path)
