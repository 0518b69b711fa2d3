"""Many processes read one plan directory: the memory of its files is there once, for all of them.

What a process holds is told as PSS, which counts a page that several map by its share. Processes
are forked from one without threads, as a fork copies locks that other threads hold.
"""

import json
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.files.mapped import MAPS
from tests.support.fresh import printed

NUM_SAMPLES = 2**24  # 64 MiB of indices
READERS = 8


def mapped(path: str, kind: str) -> int:
    """Bytes that this process holds of files below a path, by the kernel's count of that kind."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *values = line.split()
        if not name.endswith(":"):  # the first line of another map, which ends with its file
            inside = values[-1].startswith(path)
        elif inside and name == f"{kind}:":
            total += int(values[0]) * 1024
    return total


def touch(plan: ip.Plan, path: str, together: Barrier, results: Any) -> None:
    """Read the whole order, and tell what that holds while all others hold it too."""
    each = 2**20
    digest = 0
    for start in range(0, NUM_SAMPLES, each):
        digest = hash((digest, plan.order.take(0, start, start + each)[::4096].tobytes()))
    together.wait(timeout=60)
    results.put((mapped(path, "Pss"), mapped(path, "Rss")))
    together.wait(timeout=60)


def read_together(path: str, method: str) -> dict[str, Any]:
    """Start readers of a plan directory by a method; return what each held, and this process."""
    plan = ip.load(path)
    plan.batch(0, step=0, rank=0)  # forked readers inherit this process's map
    context = multiprocessing.get_context(method)
    together, results = context.Barrier(READERS + 1), context.SimpleQueue()
    arguments = (plan, path, together, results)
    readers = [context.Process(target=touch, args=arguments) for _ in range(READERS)]  # type: ignore[attr-defined]
    for reader in readers:
        reader.start()
    together.wait(timeout=60)
    held = [results.get() for _ in readers]
    own = mapped(path, "Pss")
    together.wait(timeout=60)
    for reader in readers:
        reader.join()
    assert [0] * READERS == [reader.exitcode for reader in readers]
    return {"held": held, "own": own}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan directory of 64 MiB."""
    path = tmp_path_factory.mktemp("large") / "a.plan"
    ip.save(ip.Plan(ip.Sequential(NUM_SAMPLES), world_size=READERS, batch_size=256), path)
    return path


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_readers_share_memory(large: Path, method: str) -> None:
    """Eight processes that have read all of a plan hold its file once, not eight times."""
    code = (
        "import json, sys; from tests.together.test_sharing import read_together; "
        "print(json.dumps(read_together(*sys.argv[1:])))"
    )
    said = json.loads(printed("-c", code, large, method, loud=True))
    size = (large / "epoch-00000/chunk-00000.npy").stat().st_size
    assert size > 2**26
    shares, wholes = zip(*said["held"], strict=True)
    assert all(0.99 * size < whole < 1.01 * size for whole in wholes), said
    assert 0.97 * size < sum(shares) + said["own"] < 1.03 * size, said


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
