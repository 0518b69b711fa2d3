"""What fetching by the plan saves under a slow store: `python -m benchmarks.measure.fetching`.

One rank, with one worker, reads shards from an HTTP server on loopback, which limits its bytes per
second, and delays each answer; a step sleeps for the time of a computation. Printed are the seconds
of an epoch, the seconds that batches waited for the store in all epochs, and downloads over the
size of the dataset: for fetching by the plan, and for an LRU cache of the same size that fetches
what a batch asks for. The bound is what the store or the steps alone take. All samples are compared
with the plan's; `--quick` reads few of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import threading
import time
from collections import OrderedDict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_fetch import ShardFile
from indexplan_torch import PlanLoader, ShardedDataset

PIECE = 2**15
LATENCY = 0.03  # seconds before an answer
BATCH = 64


class Case(NamedTuple):
    """A dataset, a store and a training."""

    num_shards: int
    rows: int
    width: int
    """Bytes of a row."""
    rate: float
    """Bytes a second that the store sends."""
    step: float
    """Seconds that a step computes."""
    part: float
    """Of the dataset, that there is room for."""
    epochs: int


FULL = Case(96, 256, 1024, 3e6, 0.022, 0.4, 2)
QUICK = Case(24, 64, 256, 8e6, 0.0, 0.6, 2)


Found = tuple[str, list[float], float, int]
"""A way of fetching: the seconds of its epochs, what batches waited, and how often it fetched."""


class Handler(SimpleHTTPRequestHandler):
    """Serves files at a rate that all connections share."""

    protocol_version = "HTTP/1.1"
    rate = 1.0
    lock = threading.Lock()
    free_at = 0.0

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file's bytes, each piece when its turn comes."""
        time.sleep(LATENCY)
        while data := source.read(PIECE):
            with Handler.lock:
                now = time.monotonic()
                Handler.free_at = max(Handler.free_at, now) + len(data) / Handler.rate
                wait = Handler.free_at - now
            time.sleep(wait)
            outputfile.write(data)


def serve(folder: str, rate: float, pipe: Connection) -> None:
    """Serve a folder until the process is ended; tell the port."""
    Handler.rate = rate
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    pipe.send(server.server_port)
    server.serve_forever()


def rows_of(file: ShardFile) -> Any:
    """Map the rows of an array."""
    return np.load(file.path, mmap_mode="c")


class Lru(Dataset[Any]):
    """Shards that are fetched when a batch needs them; what was used longest ago goes."""

    def __init__(self, shards: ip.Shards, cache_dir: str, room: int) -> None:
        self.shards, self.cache_dir, self.room = shards, cache_dir, room
        self.kept: OrderedDict[int, Any] = OrderedDict()
        self.num_fetched = torch.zeros(1, dtype=torch.int64)
        self.num_fetched.share_memory_()
        self.waited = torch.zeros(1, dtype=torch.float64)
        self.waited.share_memory_()

    def __len__(self) -> int:
        return self.shards.num_samples

    def rows(self, shard: int) -> Any:
        """Return the rows of a shard."""
        import fsspec

        if shard not in self.kept:
            path = f"{self.cache_dir}/{shard}.npy"
            store, root = fsspec.url_to_fs(self.shards.path)
            begun = time.perf_counter()
            store.get_file(f"{root}/{self.shards.files[shard]}", path)
            self.waited += time.perf_counter() - begun
            self.num_fetched += 1
            while sum(self.shards.num_bytes[s] for s in [*self.kept, shard]) > self.room:
                gone, _ = self.kept.popitem(last=False)
                Path(f"{self.cache_dir}/{gone}.npy").unlink()
            self.kept[shard] = np.load(path, mmap_mode="c")
        self.kept.move_to_end(shard)
        return self.kept[shard]

    def __getitems__(self, indices: Any) -> list[Any]:
        which, rows = self.shards.locate(indices)
        return [self.rows(s)[r] for s, r in zip(which.tolist(), rows.tolist(), strict=True)]


def epochs(case: Case, plan: ip.Plan, dataset: Any) -> list[float]:
    """Return the seconds of each epoch; workers live on, with what they hold."""
    options = {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True}
    loader = PlanLoader(dataset, plan, multiprocessing_context="fork", **options)
    found = []
    for epoch in range(case.epochs):
        loader.set_epoch(epoch)
        begun = time.perf_counter()
        for step, batch in enumerate(loader):
            time.sleep(case.step)
            expected = plan.batch(epoch, step=step, rank=0)
            assert expected.tolist() == batch[:, :8].contiguous().view(torch.int64)[:, 0].tolist()
        found.append(time.perf_counter() - begun)
    return found


def run(case: Case) -> list[Found]:
    """Return, of each way, the seconds of its epochs and its downloads in the mean."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").mkdir()
        random = np.random.default_rng(0)
        for shard in range(case.num_shards):
            data = random.integers(0, 256, (case.rows, case.width), np.uint8)
            first = shard * case.rows
            data[:, :8] = np.arange(first, first + case.rows)[:, None].view(np.uint8)
            np.save(folder / "data" / f"{shard:04}.npy", data)
        here = ip.shard_sizes(folder / "data" / "*.npy")
        order = ip.ShardShuffle(here, lanes=4, stripe=4 * BATCH, seed=1)
        plan = ip.Plan(order, world_size=1, batch_size=BATCH)
        list(plan.batches(0, rank=0))  # compiled
        ip.reads(plan, here, epoch=0)
        ours, its = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        server = context.Process(target=serve, args=(f"{folder}/data", case.rate, its), daemon=True)
        server.start()
        try:
            url = f"http://127.0.0.1:{ours.recv()}"
            shards = ip.Shards.from_json(here.to_json(), path=url)
            return ways(case, plan, shards, folder)
        finally:
            server.terminate()
            server.join()


def ways(case: Case, plan: ip.Plan, shards: ip.Shards, folder: Path) -> list[Found]:
    """Measure what this library does, and an LRU of the same room."""
    room = int(sum(shards.num_bytes) * case.part)
    (folder / "lru").mkdir()
    ours: Any = {"cache_dir": folder / "plan", "cache_bytes": room, "num_epochs": case.epochs}
    planned = ShardedDataset(shards, rows_of, **ours)
    lru = Lru(shards, f"{folder}/lru", room)
    first, second = epochs(case, plan, planned), epochs(case, plan, lru)
    told = planned.report()
    return [
        ("by the plan", first, told.waited_seconds, told.num_fetches),
        ("LRU of the same room", second, float(lru.waited), int(lru.num_fetched)),
    ]


def report(case: Case) -> str:
    """Return a table."""
    num_bytes = case.num_shards * case.rows * case.width
    steps = case.num_shards * case.rows // BATCH
    titles = ("first epoch", "later ones", "waited", "downloads")
    head = (
        f"{num_bytes / 1e6:.0f} MB in {case.num_shards} shards, {case.rate / 1e6:.0f} MB/s, "
        f"{LATENCY * 1e3:.0f} ms a request, room for {case.part:.0%}; {steps} steps of "
        f"{case.step * 1e3:.0f} ms"
    )
    lines = [head, f"{'':<26}" + "".join(f"{title:>13}" for title in titles)]
    for name, seconds, waited, fetched in run(case):
        later, downloads = float(np.mean(seconds[1:])), fetched / case.num_shards / case.epochs
        cells = f"{seconds[0]:>11.1f} s{later:>11.1f} s{waited:>11.1f} s{downloads:>13.2f}"
        lines.append(f"{name:<26}{cells}")
    bound = max(num_bytes / case.rate, steps * case.step)
    return "\n".join([*lines, f"{'the store, or the steps':<26}{bound:>11.1f} s"])


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    print(report(QUICK if parser.parse_args().quick else FULL))


if __name__ == "__main__":
    main()
