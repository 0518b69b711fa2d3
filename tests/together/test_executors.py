"""Building on any executor: processes, loky, MPI, Dask and SLURM end in the bytes of threads."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from dask.distributed import Future as DaskFuture

import indexplan as ip
from indexplan.cli import main
from indexplan.cli.engines import engine
from indexplan.files.chunk_files import write_chunk
from indexplan.files.format import Build
from tests.support.found import at
from tests.support.trees import tree
from tests.test_docs import ROOT, blocks, inside

PLAN = ip.Plan(ip.Shuffle(120_000, seed=9), world_size=3, batch_size=16)
CHUNKS = {"epochs": range(3), "units_per_chunk": 5000}  # 72 chunks


def saved_at(path: str) -> ip.types.Saved:
    """What a whole build of that answers."""
    return ip.types.Saved(
        path=path,
        num_bytes=1_449_216,
        num_written=72,
        num_kept=0,
        fingerprint=PLAN.fingerprint,
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed build by threads."""
    path = tmp_path_factory.mktemp("threads") / "a.plan"
    assert saved_at(str(path)) == ip.save(PLAN, path, **CHUNKS)
    return tree(path)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    """A pool of two processes, which stand in another folder."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn, initializer=os.chdir, initargs=("/",)) as pool:
        yield pool


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


def test_threads_of_the_caller(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """A thread pool of the caller's builds the same files, and is left open."""
    with ThreadPoolExecutor(3) as pool:
        ip.save(PLAN, tmp_path / "a.plan", executor=pool, **CHUNKS)
        assert 4 == pool.submit(len, "open").result()
    assert expected == tree(tmp_path / "a.plan")


def test_processes(tmp_path: Path, expected: dict[str, bytes], processes: Executor) -> None:
    """Spawned processes build the same files, also where the path is relative to the caller."""
    with inside(tmp_path):
        saved = ip.save(PLAN, "a.plan", executor=processes, **CHUNKS)
    assert saved_at("a.plan") == saved
    assert expected == tree(tmp_path / "a.plan")
    again = ip.save(PLAN, tmp_path / "a.plan", executor=processes, **CHUNKS)
    assert (0, 72) == (again.num_written, again.num_kept)


def test_loky(tmp_path: Path, expected: dict[str, bytes]) -> None:
    """Workers of loky build the same files."""
    from loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=2)
    ip.save(PLAN, tmp_path / "a.plan", executor=pool, **CHUNKS)
    pool.shutdown(wait=True)
    assert expected == tree(tmp_path / "a.plan")


def page(words: str) -> str:
    """The Python block of the page on clusters that holds some words."""
    (block,) = [block for block in blocks("docs/clusters.md") if words in block]
    return block


def test_mpi(tmp_path: Path) -> None:
    """The page's program builds under a real MPI, with its command for fewer processes."""
    (tmp_path / "build.py").write_text(page("MPIPoolExecutor"))
    (command,) = re.findall(
        r"`(mpiexec -n 65 python .*?)`", (ROOT / "docs/clusters.md").read_text()
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    folder = Path(sys.executable).parent
    words = command.replace("65", "3 -hosts 127.0.0.1", 1).split()
    words[0], words[words.index("python")] = str(folder / words[0]), sys.executable
    subprocess.run(words, check=True, cwd=tmp_path, env=environment, timeout=120)
    plan = ip.Plan(ip.Shuffle(1_000_000), batch_size=256)
    ip.save(plan, tmp_path / "a.plan", epochs=range(4))
    assert tree(tmp_path / "a.plan") == tree(tmp_path / "mpi.plan")


def test_page_on_processes(tmp_path: Path) -> None:
    """The page's program for processes runs as a script."""
    (tmp_path / "build.py").write_text(page("ProcessPoolExecutor"))
    command = [sys.executable, "build.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, cwd=tmp_path, env=environment, timeout=120)
    assert (0, 1, 2, 3) == ip.types.Stored(tmp_path / "processes.plan").build.epochs


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
    ip.save(PLAN, tmp_path / "a.plan", executor=pool, progress=kill, **CHUNKS)
    assert unfinished[0] > 0
    assert expected == tree(tmp_path / "a.plan")
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()


def test_dask_takes_results_for_errors(
    tmp_path: Path, expected: dict[str, bytes], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its executor does where a worker dies while it sends a result; each is computed again.

    A task that fails again and again ends the build.
    """
    mistaken: list[str] = []
    most = 0
    result = DaskFuture._result

    async def lost(future: DaskFuture, **options: Any) -> Any:
        found = await result(future, **options)
        if len(mistaken) < most:
            mistaken.append(future.key)
        return found

    def status(future: DaskFuture) -> str:
        return "pending" if future.key in mistaken else future._state.status

    monkeypatch.setattr(DaskFuture, "_result", lost)
    monkeypatch.setattr(DaskFuture, "status", property(status))
    pool = client.get_executor(pure=False)  # so that what is computed again has another key
    for most in (0, 1, 5):
        mistaken.clear()
        ip.save(PLAN, tmp_path / f"{most}.plan", executor=pool, **CHUNKS)
        assert most == len(mistaken)
        assert expected == tree(tmp_path / f"{most}.plan")
    most = 1000
    with pytest.raises(ValueError, match="unpack"):  # of a result, which Dask takes for an error
        ip.save(PLAN, tmp_path / "a.plan", executor=pool, **CHUNKS)


def test_dask_loses_worker_after_worker(
    tmp_path: Path, cluster: LocalCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An order that kills its workers ends a command in words, once Dask has given up."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with (
        pytest.raises(ip.IndexPlanError) as error,
        engine(SimpleNamespace(dask=cluster.scheduler_address)) as pool,
    ):
        ip.save(ip.Plan(Deadly(), batch_size=2), tmp_path / "a.plan", executor=pool)
    said = str(error.value)
    start = "the workers of the Dask cluster must stay alive; got \"Attempted to run task '"
    assert said.startswith(start)
    assert said.endswith("; give them more memory or time, then run the same build again")
    client.wait_for_workers(2, timeout=60)


def test_dask_from_the_command_line(
    tmp_path: Path, cluster: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--dask` builds on the workers of a scheduler's address."""
    words = ["--num-samples", "1000", "--batch-size", "16", "--epochs", "3", "--json"]
    made = str(tmp_path / "a.plan")
    assert 0 == main(["build", made, *words, "--dask", cluster.scheduler_address])
    said = json.loads(capsys.readouterr().out)
    assert 3 == said["num_written"]
    assert 0 == main(["build", str(tmp_path / "b.plan"), *words])
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")


def test_dask_on_this_machine(tmp_path: Path) -> None:
    """`--dask local` brings workers of its own, and says nothing but the result."""
    words = ["--num-samples", "1000", "--batch-size", "16", "--dask", "local"]
    command = [sys.executable, "-m", "indexplan", "build", str(tmp_path / "a.plan"), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert f"{tmp_path}/a.plan: 4,128 bytes; 1 chunk written, 0 were there already\n" == (
        done.stdout
    )
    assert "" == done.stderr


@pytest.mark.parametrize("kind", ["closed", "silent", "malformed"])
def test_no_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """Where no scheduler answers, the command ends in time with the address and a cure."""
    words = ["--num-samples", "1000", "--batch-size", "16"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        address = "scheduler" if kind == "malformed" else f"tcp://127.0.0.1:{port}"
        if kind == "closed":
            server.close()
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            assert 2 == main(["build", str(tmp_path / "a"), *words, "--dask", address])
    reason = "no answer in 1 s"
    if kind == "malformed":
        reason = "missing port number in address 'scheduler'"
    assert (
        "indexplan: --dask must be the address of a running Dask scheduler, or local; "
        f"got '{address}' ({reason}); start a scheduler there with `dask scheduler`, "
        "or check the address\n"
    ) == capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_dask_is_not_installed(tmp_path: Path) -> None:
    """Without Dask the error names the extra."""
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "from indexplan.cli import main\n"
        "main(['build', 'a', '--num-samples', '9', '--batch-size', '2', '--dask', 'local'])\n"
    )
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert (
        "indexplan: --dask needs dask.distributed; pip install 'indexplan[dask]'\n" == done.stderr
    )


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


# What cannot travel, and what breaks.


@dataclass(frozen=True, eq=False)
class Deadly(ip.Order):
    """An order that ends the process that computes it."""

    num_samples: int = 1000

    algorithm = "deadly-test"

    def num_units(self, epoch: int) -> int:
        return self.num_samples

    def fill(self, epoch: int, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
        os._exit(1)

    def find(self, epoch: int, indices: np.ndarray, most: int | None = None) -> Any:
        return at(indices)


def fails(tmp_path: Path, order: ip.Order, pool: Executor) -> str:
    """What a build says that fails."""
    with pytest.raises(ip.IndexPlanError) as error:
        ip.save(ip.Plan(order, batch_size=2), tmp_path / "a.plan", executor=pool)
    return str(error.value)


def test_pool_that_dies(tmp_path: Path) -> None:
    """A pool whose workers die ends the build with a cure."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        said = fails(tmp_path, Deadly(), pool)
    start = "the executor must run until the build is done; got BrokenProcessPool ("
    assert said.startswith(start)
    assert said.endswith("); run the same build again, which goes on where this one stopped")


def test_what_is_no_executor(tmp_path: Path, client: Client) -> None:
    """What takes no tasks is refused before anything is written."""
    rule = "executor must be a concurrent.futures.Executor"
    for pool in ("dask", client, ThreadPoolExecutor):
        assert f"{rule}; got {pool!r}; for Dask, pass client.get_executor()" == (
            fails(tmp_path, PLAN.order, pool)  # type: ignore[arg-type]
        )
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    got = "RuntimeError (cannot schedule new futures after shutdown)"
    said = f"executor must take tasks; got {got}; pass a new one"
    assert said == fails(tmp_path, PLAN.order, pool)
    assert [] == list(tmp_path.iterdir())


def test_order_that_workers_cannot_import(
    tmp_path: Path, processes: Executor, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class whose module only the caller has is a clear error on every executor."""
    module = types.ModuleType("only_here")
    module.Lost = type("Lost", (Deadly,), {"__module__": "only_here"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "only_here", module)
    expected = (
        "the order's class must be importable by every worker of the executor; got \"No module "
        "named 'only_here'\"; define it in a module, and install that module there or add it to "
        "PYTHONPATH"
    )
    for pool in (processes, client.get_executor()):
        assert expected == fails(tmp_path, module.Lost(1000), pool)  # type: ignore[attr-defined]
        assert 4 == pool.submit(len, "open").result()


def test_order_that_cannot_be_pickled(tmp_path: Path, processes: Executor) -> None:
    """A class inside a function cannot travel to processes; threads need no travelling."""

    @dataclass(frozen=True, eq=False)
    class Local(ip.Sequential):
        algorithm = "local-test"

        def to_dict(self) -> dict[str, object]:
            return {"algorithm": self.algorithm, "num_samples": self.num_samples}

    said = fails(tmp_path, Local(1000), processes)
    assert said.startswith(
        "the order must be picklable, to be sent to the executor's workers; got "
    )
    assert "Local" in said
    assert said.endswith(
        "; define its class at the top of a module, and keep only what can be pickled in it"
    )
    with ThreadPoolExecutor(1) as pool:
        assert ip.save(ip.Plan(Local(1000), batch_size=2), tmp_path / "a.plan", executor=pool)


def test_storage_that_a_worker_does_not_see(tmp_path: Path) -> None:
    """A worker that does not see the caller's plan directory says so, and writes nothing."""
    plan = ip.Plan(ip.Shuffle(1000), batch_size=2)
    build = Build.of(plan.to_dict(), plan.order, [0], 2**26, None)
    with pytest.raises(ip.PlanFileError) as error:
        write_chunk(str(tmp_path), build, "0" * 64, plan.order, next(build.chunks()))
    assert str(error.value) == (
        f"{tmp_path} must be there, for every worker to see; got no plan.json there on "
        f"{os.uname().nodename}; if nobody removed it, choose a path on shared storage"
    )
    assert [] == list(tmp_path.iterdir())
