"""Plan files: what it takes to build, verify and read them, each in a fresh process.

Takes some minutes and 9 GB in the temporary folder, which TMPDIR names.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from benchmarks.measure import page_cache
from benchmarks.measure.fresh import run_fresh
from benchmarks.measure.memory import measured
from benchmarks.render.pages import PEERS

PAGE = "plan-files"
WORLD, BATCH, NODE = 4096, 256, range(2048, 2056)
READS = 2000
KINDS = dict(zip(("plan", "export", "npy", "safetensors", "none"), PEERS, strict=True))
"""Ways to keep an order."""


def order_of(n: int) -> ip.Shuffle:
    """Return the order that all measurements are of."""
    return ip.Shuffle(n, seed=1)


def hold_to(cores: int | None) -> None:
    """Leave this process the first of its cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def build(n: int, path: str) -> dict[str, Any]:
    """Time a build, and measure by how much the process grows."""
    ip.save(ip.Plan(order_of(1000), batch_size=BATCH), f"{path}.small")  # loads the kernels
    plan = ip.Plan(order_of(n), world_size=WORLD, batch_size=BATCH)
    saved, result = measured(lambda: ip.save(plan, path))
    return {**result, "num_bytes": saved.num_bytes}


def verify(path: str, cores: int | None = None) -> dict[str, Any]:
    """Time a verification of every byte, by the clock and of the CPU, on some of the cores."""
    hold_to(cores)
    ip.verify(ip.load(f"{path}.small").replace(world_size=2))
    plan = ip.load(path)
    start, cpu = perf_counter(), process_time()
    report = ip.verify(plan)
    result = {"seconds": perf_counter() - start, "cpu_seconds": process_time() - cpu}
    assert report.ok, str(report)
    return result


def each_us(read: Callable[[int], Any], places: list[int]) -> float:
    """Return the median of the microseconds of one call."""
    times = []
    for place in places:
        start = perf_counter()
        read(place)
        times.append(perf_counter() - start)
    return statistics.median(times) * 1e6


def read(path: str) -> dict[str, Any]:
    """Time random reads of 256 indices from the page cache, at two levels."""
    plan = ip.load(path)
    order, n = plan.order, plan.order.num_samples
    rng = np.random.default_rng(0)
    starts = rng.integers(0, n - BATCH, READS).tolist()
    for start in starts[:50]:
        expected = order_of(n).take(0, start, start + BATCH)
        np.testing.assert_array_equal(expected, order.take(0, start, start + BATCH))
    steps = rng.integers(0, plan.steps(0).stop, READS).tolist()
    return {
        "order.take": each_us(lambda start: order.take(0, start, start + BATCH), starts),
        "plan.batch": each_us(lambda step: plan.batch(0, step=step, rank=step % WORLD), steps),
    }


def node(path: str) -> dict[str, Any]:
    """Measure what a node of 8 ranks of 4096 reads from disk, beginning with a cold cache."""
    plan = ip.load(path)
    computed = ip.Plan(order_of(plan.order.num_samples), world_size=WORLD, batch_size=BATCH)
    computed.batch(0, step=0, rank=0)
    chunks = sorted(Path(path).glob("epoch-*/chunk-*.npy"))
    for chunk in chunks:
        page_cache.drop(chunk)
    warm = sum(int(page_cache.resident(chunk).sum()) for chunk in chunks)
    before, useful, seconds = page_cache.read_by(), 0, []
    for step in range(plan.steps(0).stop):
        start = perf_counter()
        batches = [plan.batch(0, step=step, rank=rank) for rank in NODE]
        seconds.append(perf_counter() - start)
        useful += 4 * sum(map(len, batches))
        for rank, batch in zip(NODE, batches, strict=True):
            np.testing.assert_array_equal(computed.batch(0, step=step, rank=rank), batch)
    return {
        "resident_pages": warm,
        "useful_bytes": useful,
        "read_bytes": page_cache.read_by() - before,
        "step_us": statistics.median(seconds) * 1e6,
    }


def write_peer(kind: str, n: int, path: str) -> dict[str, Any]:
    """Time how long it takes to write an order; what is not a plan gets it made already."""
    plan = ip.Plan(order_of(n), world_size=8, batch_size=BATCH)
    permutation = plan.order.take(0, 0, n)
    os.sync()
    start = perf_counter()
    if kind == "plan":
        ip.save(plan, path)
    elif kind == "export":
        ip.export(plan, path)
    elif kind == "npy":
        np.save(f"{path}.npy", permutation)
    elif kind == "safetensors":
        from safetensors.numpy import save_file

        save_file({"order": permutation.astype(np.uint32)}, path)
    found = Path(path if kind != "npy" else f"{path}.npy")
    files = [found] if found.is_file() else [file for file in found.rglob("*") if file.is_file()]
    for file in files:  # a plan's and an export's are synced already
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    seconds = perf_counter() - start
    return {"seconds": seconds, "num_bytes": sum(file.stat().st_size for file in files)}


def open_peer(kind: str, n: int, path: str) -> dict[str, Any]:
    """Time opening, and random reads of a batch of 256 as an array; measure what is held."""
    plan = ip.Plan(order_of(n), world_size=8, batch_size=BATCH)
    plan.batch(0, step=0, rank=0)
    if kind == "safetensors":
        import safetensors.numpy  # noqa: F401 (not a part of opening)

    def opened() -> Callable[[int], Any]:
        if kind == "plan":
            stored = ip.load(path).order
            return lambda start: stored.take(0, start, start + BATCH)
        if kind == "none":
            return lambda start: ip.Shuffle(n, seed=1).take(0, start, start + BATCH)
        if kind in {"npy", "export"}:
            name = f"{path}.npy" if kind == "npy" else f"{path}/epoch-00000/rank-00000.npy"
            array = np.load(name, mmap_mode="r")
            return lambda start: np.array(array[start : start + BATCH])
        from safetensors import safe_open

        tensor = safe_open(path, "numpy").get_slice("order")
        return lambda start: tensor[start : start + BATCH]

    opened()  # loads modules
    reader, result = measured(opened)
    seconds = [result["seconds"]]
    for _ in range(2):
        begin = perf_counter()
        opened()
        seconds.append(perf_counter() - begin)
    share = plan.indices(0, rank=0) if kind == "export" else plan.order.take(0, 0, n)
    starts = np.random.default_rng(0).integers(0, len(share) - BATCH, READS).tolist()
    for start in starts[:50]:
        np.testing.assert_array_equal(share[start : start + BATCH], reader(start))
    us = each_us(reader, starts)
    return {
        "open_seconds": min(seconds),
        "held_bytes": max(0, result["held_bytes"]),
        "us": us,
    }


def write_zeros(path: Path, num_bytes: int) -> float:
    """Return the seconds that dd takes to write and sync as many bytes as a build writes."""
    command = ["dd", "if=/dev/zero", f"of={path}", "bs=4M", "conv=fsync", "status=none"]
    command += ["iflag=count_bytes", f"count={num_bytes}"]
    os.sync()
    start = perf_counter()
    subprocess.run(command, check=True)
    seconds = perf_counter() - start
    assert path.stat().st_size == num_bytes
    path.unlink()
    os.sync()
    return seconds


def run_job(name: str, *arguments: Any) -> dict[str, Any]:
    """Return what a function of this module returns in a process of its own."""
    found: dict[str, Any] = run_fresh(f"{__name__}.{name}", *arguments)
    return found


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Measure everything, in a temporary folder that is left as it was. Return rows."""
    n, few, peers, rounds = (
        (3_000_000, 300_000, 300_000, 1) if quick else (10**9, 10**8, 3 * 10**7, 3)
    )
    num_bytes = 4 * n + 128 * -(-n // 2**26)
    rows: list[dict[str, Any]] = []

    def row(case: str, **numbers: Any) -> None:
        rows.append({"table": "measurements", "case": case, **numbers})

    with tempfile.TemporaryDirectory(prefix="indexplan-") as name:
        folder, path = Path(name), f"{name}/a.plan"
        small = run_job("build", few, f"{path}.few")
        dds, builds = [], []
        for _ in range(rounds):  # in turns
            dds.append(write_zeros(folder / "zeros", num_bytes))
            shutil.rmtree(path, ignore_errors=True)
            os.sync()
            builds.append(run_job("build", n, path))
            assert builds[-1]["num_bytes"] == num_bytes
        row("build, all cores", seconds=[run["seconds"] for run in builds], num_bytes=num_bytes)
        row("dd conv=fsync", seconds=dds, num_bytes=num_bytes)
        for words, cores in (("one core", 1), ("all cores", None)):
            runs = [run_job("verify", path, cores) for _ in range(min(2, rounds))]
            for case, key in ((f"verify, {words}", "seconds"), ("its CPU time", "cpu_seconds")):
                if cores or key == "seconds":
                    title = case if key == "seconds" else f"verify, {words}, {case}"
                    row(title, seconds=[run[key] for run in runs], num_bytes=num_bytes)
        for level, us in run_job("read", path).items():
            row(f"a random read of 256, warm, `{level}`", us=us)
        node = run_job("node", path)
        row("a node's step of 8 batches of 256, cold cache", us=node.pop("step_us"))
        row("read from disk for 8 ranks of 4096, cold cache", **node)
        for num, some in ((n, builds), (few, [small])):
            grown = [build["peak_bytes"] for build in some]
            row(f"growth of a build of {num:,} indices, all cores", grown_bytes=grown)
        shutil.rmtree(path)
        for kind, who in KINDS.items():
            place = str(folder / kind)
            written = {"seconds": 0, "num_bytes": 0}
            if kind != "none":
                written = run_job("write_peer", kind, peers, place)
            peer = {"table": "alternatives", "case": "", "who": who}
            peer["bytes_per_index"] = written["num_bytes"] / peers
            rows.append({**peer, "write_seconds": written["seconds"]})
            rows[-1] |= run_job("open_peer", kind, peers, place)
    return [{"table": "plan", "n": n, "num_bytes": num_bytes, "cores": os.cpu_count()}, *rows]


@pytest.mark.nightly
def test_plan_files(whole: Callable[..., Any]) -> None:
    """Measure all of it."""
    whole(measure)
