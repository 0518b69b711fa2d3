"""Many processes read one plan directory, or one order's table: its memory is there once, for all.

The kernel's own count says what share of each page is a process's (PSS of /proc/PID/smaps).
"""

import os
import pickle
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from benchmarks.measure.fresh import ROOT
from indexplan.files.mapped import MAPS

WAYS = ("forked", "torchrun", "DataLoader, spawn")
MEMBER = "import sys; from tests.together.test_sharing import start; start(*sys.argv[1:])"
WAIT = 600  # seconds at most, on a machine that others use
EACH = 2**17  # samples that are read at a time: little memory beside what is shared


class Batches:
    """A dataset whose items are steps: whoever reads one says so, and waits for the others."""

    def __init__(self, order: ip.Order, ready: str) -> None:
        self.order, self.ready = order, Path(ready)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, step: int) -> int:
        num = self.order.num_units(0)
        for begin in range(0, num, EACH):
            self.order.take(0, begin, min(begin + EACH, num))
        (self.ready / str(os.getpid())).touch()
        while not (self.ready / "go").exists():
            time.sleep(0.05)
        return step


def start(way: str, num: str, path: str, ready: str) -> None:
    """Read an order, by weights or of a plan directory, in processes started in some way."""
    order = ip.Weighted(ip.Column(path)) if path.endswith(".npy") else ip.load(path).order
    batches: Any = Batches(order, ready)
    if way == "torchrun":
        batches[0]
    elif way.startswith("DataLoader"):
        from torch.utils.data import DataLoader

        options: dict[str, Any] = {"num_workers": int(num), "prefetch_factor": 1}
        options["multiprocessing_context"] = way.rpartition(" ")[2]
        list(DataLoader(batches, sampler=range(int(num)), **options))
    else:
        if path.endswith(".plan"):
            order.take(0, 0, 1)  # forked readers inherit this process's map
        context: Any = get_context("fork" if way == "forked" else "spawn")
        members = [context.Process(target=batches.__getitem__, args=(0,)) for _ in range(int(num))]
        for each in members:
            each.start()
        for each in members:
            each.join()


def held(way: str, num: int, path: str, folder: str, ready: Path, *, own: bool) -> int:
    """Return the bytes that processes hold together of files in a folder, and if `own` of no file.

    They have all read the order, and whoever started them is counted, too.
    """
    ready.mkdir()
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(num), "--no-python"]
    words = [*torchrun, sys.executable] if way == "torchrun" else []
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")])
    node = subprocess.Popen(
        [sys.executable, *words, "-c", MEMBER, way, str(num), path, str(ready)],
        env={**os.environ, "INDEXPLAN_CACHE": folder, "PYTHONPATH": paths},
        cwd=ROOT,
    )
    try:
        began = time.monotonic()
        while len(members := [each.name for each in ready.iterdir()]) < num:
            assert node.poll() is None
            assert time.monotonic() - began < WAIT
            time.sleep(0.05)
        found = sum(memory(pid, folder, own=own) for pid in {*members, str(node.pid)})
        (ready / "go").touch()
        assert 0 == node.wait(WAIT)
        return found
    finally:
        node.kill()


def memory(pid: str, folder: str, *, own: bool) -> int:
    """Return a process's share of mapped files in a folder, and if `own` of memory without one."""
    found, path = 0, ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-", line):
            path = [*line.split(maxsplit=5), ""][5]
        elif line.startswith("Pss:") and (
            path.startswith(folder) or (own and (not path or path.startswith("[")))
        ):
            found += int(line.split()[1]) * 1024
    return found


@pytest.mark.parametrize("way", WAYS)
def test_processes_have_one_table(way: str, tmp_path: Path) -> None:
    """Beyond what they hold that read a small order, two hold its table, once."""
    column, found = np.random.default_rng(0).integers(1, 4000, 4_000_000).astype(np.float64), []
    ip.Weighted(column[:1000]).take(0, 0, 1)  # compiles what would take memory
    for part in (column[:1000], column):
        path, cache = f"{tmp_path}/{len(part)}.npy", f"{tmp_path}/cache-{len(part)}"
        np.save(path, part)
        found.append(held(way, 2, path, cache, tmp_path / f"ready-{len(part)}", own=True))
    assert 0.9 < (found[1] - found[0]) / ip.Weighted(column).ip_table_bytes < 1.2


@pytest.mark.parametrize("way", ["forked", "spawned"])
def test_readers_share_memory(way: str, tmp_path: Path) -> None:
    """Eight processes that have read all of a plan hold its file once, not eight times."""
    path = f"{tmp_path}/a.plan"
    ip.save(ip.Plan(ip.Sequential(2**24), world_size=8, batch_size=256), path)
    size = Path(path, "epoch-00000/chunk-00000.npy").stat().st_size
    assert size > 2**26
    assert 0.97 * size < held(way, 8, path, path, tmp_path / "ready", own=False) < 1.03 * size


def open_files(below: Path) -> list[str]:
    """Files below a path that this process holds open, or has mapped."""
    links = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
    maps = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    return [name for name in links + maps if name.startswith(str(below))]


def test_what_is_forgotten_is_closed(tmp_path: Path) -> None:
    """A plan that nobody holds any more holds no file, nor the space of one that was deleted.

    A reader holds a map of each of its files, and its descriptor.
    """
    ip.save(ip.Plan(ip.Shuffle(3000), batch_size=8), tmp_path / "a.plan", units_per_chunk=10)
    first, second = (ip.load(tmp_path / "a.plan") for _ in range(2))
    for plan in (first, second):
        for start in range(3000):
            plan.order.take(0, start, start + 1)
    assert 0 < len(open_files(tmp_path)) <= 4 * MAPS
    del plan, first
    assert 0 < len(open_files(tmp_path)) <= 2 * MAPS  # the other still reads
    del second
    assert [] == open_files(tmp_path)


def test_chunks_that_are_mapped_again(tmp_path: Path) -> None:
    """Of many chunks some are mapped at a time, and all are read, by many threads at once too."""
    plan = ip.Plan(ip.Shuffle(3000), world_size=4, batch_size=8)
    ip.save(plan, tmp_path / "a.plan", units_per_chunk=10)
    read = ip.load(tmp_path / "a.plan")
    expected = plan.order.take(0, 0, 3000)
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: read.order.take(0, 0, 3000), range(16)))
    assert all(np.array_equal(expected, numbers) for numbers in taken)
    assert len(open_files(tmp_path)) <= 2 * MAPS


@pytest.mark.parametrize("chunk", [2**20, 10])  # one file an epoch, and a hundred
def test_readers_pickle_small(tmp_path: Path, chunk: int) -> None:
    """A reader, and a plan that holds one, travel to another process in less than 1 kB.

    What a DataLoader sends to each worker beside the dataset does not grow with the plan.
    """
    from indexplan_torch import PlanLoader

    order = ip.BlockShuffle(1000, 16, window=4)
    plan = ip.Plan(order, world_size=8, batch_size=(5, 3))
    ip.save(plan, tmp_path / "a.plan", epochs=range(3), units_per_chunk=chunk)
    plan = ip.load(tmp_path / "a.plan")
    plan.indices(0, rank=0)  # open maps do not travel
    for thing in (plan.order, plan, plan.resume(plan.cursor(1, step=7))):
        text = pickle.dumps(thing)
        assert len(text) < 1000
        assert thing == pickle.loads(text)  # noqa: S301 (our own)
    loader = PlanLoader(range(1000), plan, rank=0, world_size=8)
    list(loader)
    assert len(pickle.dumps((loader.dataset, loader.collate_fn, loader.worker_init_fn))) < 4000
