"""Building on any executor: processes, loky, MPI, Dask and SLURM end in the bytes of threads."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask
import pytest
from dask.distributed import Client, LocalCluster
from loky import get_reusable_executor

import indexplan as ip
from indexplan.files.machine import num_cores
from indexplan.files.running import IN_FLIGHT, run
from tests.errors.catalogue.made import Elsewhere
from tests.support.trees import tree
from tests.test_docs import ROOT, blocks

PLAN = ip.Plan(ip.Shuffle(120_000, seed=9), world_size=3, batch_size=16)
CHUNKS = {"epochs": range(3), "units_per_chunk": 5000}  # 72 chunks


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed build by threads."""
    path = tmp_path_factory.mktemp("threads") / "a.plan"
    ip.save(PLAN, path, **CHUNKS)
    return tree(path)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A Dask cluster of two processes, each of which is started again as often as it dies.

    After a while from its first death, Dask would give up one that is being started just then.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    """A client of the Dask cluster."""
    with Client(cluster, set_as_default=False) as client:
        yield client


def test_pools_of_the_caller(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """Threads, loky's workers and spawned processes build the same files, and are left open.

    A path may be relative to the caller, wherever the workers stand.
    """
    sizes = {"num_bytes": 1_449_216, "fingerprint": PLAN.fingerprint}
    spawn = get_context("spawn")
    with (
        ThreadPoolExecutor(3) as threads,
        get_reusable_executor(2) as loky,
        ProcessPoolExecutor(2, spawn, initializer=os.chdir, initargs=("/",)) as processes,
    ):
        for name, pool in {"a": threads, "b": loky, "c": processes}.items():
            with contextlib.chdir(tmp_path):
                for written in (72, 0):
                    saved = ip.save(PLAN, f"{name}.plan", executor=pool, **CHUNKS)
                    counted = {"num_written": written, "num_kept": 72 - written}
                    assert ip.types.Saved(path=f"{name}.plan", **sizes, **counted) == saved
            assert expected == tree(tmp_path / f"{name}.plan")
            assert 4 == pool.submit(len, "open").result()


def page(words: str) -> str:
    """The Python block of the page on clusters that holds some words."""
    (block,) = [block for block in blocks("docs/files.md") if words in block]
    return block


def test_mpi(tmp_path: Path) -> None:
    """The page's program builds under a real MPI, with its command for fewer processes."""
    (tmp_path / "build.py").write_text(page("MPIPoolExecutor"))
    (command,) = re.findall(r"`(mpiexec -n 65 python .*?)`", (ROOT / "docs/files.md").read_text())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    folder = Path(sys.executable).parent
    words = command.replace("65", "3 -hosts 127.0.0.1", 1).split()
    words[0], words[words.index("python")] = str(folder / words[0]), sys.executable
    subprocess.run(words, check=True, cwd=tmp_path, env=environment, timeout=120)
    plan = ip.Plan(ip.Shuffle(1_000_000), batch_size=256)
    ip.save(plan, tmp_path / "a.plan", epochs=range(4))
    assert tree(tmp_path / "a.plan") == tree(tmp_path / "mpi.plan")


def test_dask_loses_a_worker(tmp_path: Path, expected: dict[str, bytes], client: Client) -> None:
    """A worker that is killed in mid-build costs time, and changes no byte."""
    before = client.run(os.getpid)
    victim = min(before.values())
    pool = client.get_executor()
    tasks: list[Future] = []
    unfinished: list[int] = []
    submit = pool.submit

    def remember(*task: object) -> Future:
        tasks.append(submit(*task))
        return tasks[-1]

    def kill(done: int, total: int) -> None:
        if done > total // 4 and not unfinished:
            os.kill(victim, signal.SIGKILL)
            unfinished.append(sum(not task.done() for task in tasks))

    pool.submit = remember
    try:
        ip.save(PLAN, tmp_path / "a.plan", executor=pool, progress=kill, **CHUNKS)
    except (AttributeError, TypeError, ValueError):  # Dask took a result that was lost for an error
        ip.save(PLAN, tmp_path / "a.plan", executor=pool, **CHUNKS)
    assert unfinished[0] > 0
    assert expected == tree(tmp_path / "a.plan")
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()


def test_dask(tmp_path: Path, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's program builds on the workers of a scheduler's address, as threads do."""
    monkeypatch.chdir(tmp_path)
    program = page("Client(").replace("tcp://scheduler:8786", cluster.scheduler_address)
    exec(program, {"__name__": "__main__"})  # noqa: S102 (our own page)
    ip.save(ip.load("dask.plan").replace(order=ip.Shuffle(1_000_000)), "b.plan", epochs=range(4))
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "dask.plan")


def test_slurm_job_script() -> None:
    """The page's recipe asks SLURM for what it says, and starts workers that find the scheduler."""
    loopback = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "port": 0}
    import dask_jobqueue  # noqa: F401 (before the setting: it brings defaults)

    names: dict[str, object] = {}
    block = page("SLURMCluster").replace("print(cluster.job_script())", "")
    with dask.config.set({"jobqueue.slurm.scheduler-options": loopback}):
        exec(block, names)  # noqa: S102 (our own page)
    cluster = names["cluster"]
    with cluster:  # type: ignore[attr-defined]
        script = cluster.job_script()  # type: ignore[attr-defined]
        address = cluster.scheduler_address  # type: ignore[attr-defined]
    assert {
        "#!/usr/bin/env bash",
        "#SBATCH -p cpu",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=32",
        "#SBATCH --mem=8G",
        "#SBATCH -t 02:00:00",
        "#SBATCH --requeue",
    } <= set(script.splitlines())
    worker = script.splitlines()[-1]
    assert f"{sys.executable} -m distributed.cli.dask_worker {address} " in worker
    assert "--nthreads 32 " in worker
    assert "--nanny" in worker


def test_threads_take_an_order_that_cannot_be_pickled(tmp_path: Path) -> None:
    """A class inside a function cannot travel to processes; threads need no travelling."""

    @dataclass(frozen=True, eq=False)
    class Local(ip.Sequential):
        algorithm = "local-test"

        def to_dict(self) -> dict[str, object]:
            return {"algorithm": self.algorithm, "num_samples": self.num_samples}

    with ThreadPoolExecutor(1) as pool:
        assert ip.save(ip.Plan(Local(1000), batch_size=2), tmp_path / "a.plan", executor=pool)


# Tasks on an executor: a bounded number in flight, and none begun after an error.


class Counting:
    """A pool that remembers its tasks."""

    def submit(self, *task: Any) -> Future:
        future: Future = super().submit(*task)  # type: ignore[misc]
        self.__dict__.setdefault("all", []).append(future)
        return future


class Threads(Counting, ThreadPoolExecutor):
    """To whose tasks everything is at hand."""


class Others(Counting, Elsewhere):
    """Whose tasks travel, with all that they need."""


def negated(_: bytes, item: int) -> int:
    """Return an item's opposite, whatever is sent with it."""
    return -item


@pytest.mark.parametrize(
    ("pool", "num_bytes", "most"),
    [
        (lambda: Threads(2), 2**26, IN_FLIGHT),
        (Others, 2**17, IN_FLIGHT),
        (Others, 2**20, 255),
        (Others, 2**26, max(3, 2 * num_cores())),
    ],
)
def test_tasks_in_flight_are_bounded(pool: Any, num_bytes: int, most: int) -> None:
    """However many chunks a plan has; of tasks that carry much fewer, but enough for the cores.

    Each result is taken once.
    """
    taken: list[int] = []
    in_flight: list[int] = []

    def take(item: int, result: int) -> None:
        in_flight.append(len(made.all) - len(taken))
        assert -item == result
        taken.append(item)

    with pool() as made:
        run(made, negated, (b"x" * num_bytes,), range(most + 9), take)
    assert list(range(most + 9)) == sorted(taken)
    assert most == max(in_flight)


def test_error_cancels_what_waits() -> None:
    """After an error no task begins any more, on an executor that stays open."""
    failed = threading.Event()

    def task(item: int) -> None:
        if item == 0:
            raise ip.PlanFileError("the disk is full")
        failed.wait(60)

    with Threads(1) as pool:
        with pytest.raises(ip.PlanFileError, match="the disk is full"):
            run(pool, task, (), range(100), lambda *_: None)
        cancelled = [future.cancelled() for future in pool.all]  # type: ignore[attr-defined]
        failed.set()
    assert [False, False] == cancelled[:2] or [False, True] == cancelled[:2]
    assert all(cancelled[2:])
