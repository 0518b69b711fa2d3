"""`indexplan bench`: its rows, its errors, and what it says where torch cannot be measured."""

import doctest
import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.files import machine
from indexplan.reports.benchmark import measuring
from indexplan.reports.benchmark.measuring import bench
from indexplan.reports.benchmark.rows import Row
from tests.cli.test_help import examples, page, works

KEYS = ["new_process", "first_batch", "share_1", "random_batch", "resume", "locate", "torch"]


def test_example() -> None:
    """The example of `bench` is right."""
    failed, tried = doctest.testmod(measuring)
    assert (0, True) == (failed, tried > 0)


def keys() -> list[str]:
    """The rows that are expected, in their order."""
    shares = [f"share_{count}" for count in machine.thread_counts(machine.num_cores())]
    return [*KEYS[:2], *shares, *KEYS[3:]]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the command prints as JSON."""
    assert 0 == main(["bench", *words, "--json"])
    said = capsys.readouterr()
    assert "" == said.err
    result: dict[str, Any] = json.loads(said.out)
    return result


def fails(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert 2 == main(["bench", *words])
    said = capsys.readouterr()
    assert "" == said.out
    return said.err


def test_plans_with_columns(tmp_path: Path) -> None:
    """Processes of their own are given the columns, be they of a file or an array."""
    np.save(tmp_path / "a.npy", np.arange(1, 201))
    sources = {"a": ip.LengthGrouped(tmp_path / "a.npy", 8), "b": ip.Grouped([0, 1] * 50, 4)}
    plan = ip.Plan(ip.Mixture(sources, {"a": 1, "b": 1}), world_size=2, batch_size=1)
    assert KEYS[:2] == [row.key for row in measuring._firsts(plan)]


def test_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row has a time, an array's cost per index follows from it, and torch needs more."""
    said = run(capsys, "--num-samples", "1e6", "--world-size", "4")
    plan = ip.Plan(ip.Shuffle(10**6), world_size=4, batch_size=256)
    assert plan == ip.Plan.from_dict(said["plan"])
    assert ip.__version__ == said["version"]
    assert keys() == [row["key"] for row in said["rows"]]
    rows = {row["key"]: row for row in said["rows"]}
    for row in rows.values():
        assert row["seconds"] > 0
        each = row["seconds"] / row["num_indices"] * 1e9 if row["num_indices"] else None
        assert each == row["ns_per_index"]
    sizes = {key: row["num_indices"] for key, row in rows.items()}
    assert (250_000, 256, 0) == (sizes["share_1"], sizes["first_batch"], sizes["locate"])
    assert rows["torch"]["num_indices"] == 256
    assert rows["torch"]["peak_bytes"] > 30 * 10**6 > 10 * rows["first_batch"]["peak_bytes"]
    assert " times the plan's time, " in rows["torch"]["note"]


def test_too_large_for_torch(capsys: pytest.CaptureFixture[str]) -> None:
    """A size that no memory holds is measured all the same, and torch's row says what it needs."""
    assert 0 == main(["bench", "--num-samples", "1e15", "--world-size", "64",
                      "--order", "BlockShuffle(block_size=4096)"])  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1,000,000,000,000,000 samples, 64 ranks; ")
    assert ["time", "per", "index", "million/s", "memory"] == lines[2].split()
    assert len(keys()) + 3 == len(lines)
    assert "16,384 steps of one rank, 1 thread" in lines[5]
    free = machine.free_bytes()
    assert free is not None
    assert "does not fit: needs about 48,000,000.0 GB, " in lines[-1]
    assert lines[-1].endswith(" GB are free")


@pytest.mark.parametrize(("remainder", "resume"), [("carry", False), ("spread", True)])
def test_every_kind_of_plan(remainder: str, resume: bool) -> None:
    """Any plan can be measured, also one of sub-epochs, or one that was resumed."""
    plan = ip.Plan(
        ip.Sequential(5000), world_size=2, batch_size=8, sub_epochs=3, remainder=remainder
    )
    if resume:
        plan = plan.resume(plan.cursor(1, 2, step=50))
    calls: list[tuple[int, int]] = []
    result = bench(plan, progress=lambda done, total: calls.append((done, total)))
    assert keys() == [row.key for row in result.rows]
    jobs = len(keys()) - 1  # the first two rows are of one
    assert [(done, jobs) for done in range(jobs + 1)] == calls
    assert plan == result.plan


def test_a_step_that_takes_many_epochs() -> None:
    """Under "carry", where the next epochs have no step of their own, the first one is asked."""
    plan = ip.Plan(ip.Shuffle(10), world_size=2, batch_size=300, remainder="carry")
    assert 300 == measuring._firsts(plan)[1].num_indices


def test_no_step_to_measure(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan without a step is refused, with the cure."""
    words = ("--num-samples", "100", "--world-size", "8", "--remainder", "drop")
    assert (
        "indexplan: epoch 0 must have a full step, as remainder='drop' reads no other; got "
        "global batches of 2,048 units, and 100 units in it; let a global batch have at most 100 "
        "units, or use --remainder spread or pad\n"
    ) == fails(capsys, *words)


def test_torch_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take too long is not run, and the row says how long, and how that is known."""
    monkeypatch.setattr(measuring, "TORCH_LIMIT", 0.0)
    row = measuring._torch(ip.Plan(ip.Shuffle(4 * 10**6), world_size=4, batch_size=8), 10**12)
    assert row.seconds is None
    assert row.note.startswith("about ")
    assert row.note.endswith("s by extrapolation from 1e6 samples; not run")


def test_unknown_memory() -> None:
    """Where nobody knows how much memory is free, what needs much of it is not run."""
    row = measuring._torch(ip.Plan(ip.Shuffle(10**9), world_size=4, batch_size=8), None)
    expected = "not run: needs about 48.0 GB; how much is free is unknown here"
    assert (None, expected) == (row.seconds, row.note)


def test_without_torch(tmp_path: Path) -> None:
    """In an environment without torch, its row says so, and the others are there."""
    script = """
import sys, importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "torch" else find(name)
import indexplan as ip
from indexplan.reports.benchmark import measuring
print(measuring._torch(ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=8), None).note)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "torch is not installed\n" == done.stdout


def test_a_child_is_of_this_package(tmp_path: Path) -> None:
    """The measuring process imports the package that asks, however that one was found."""
    root = Path(__file__).parents[2]
    copy = tmp_path / "elsewhere"
    shutil.copytree(root / "indexplan", copy / "indexplan")
    (copy / "indexplan/version.py").write_text('__version__ = "copied"\n')
    child = (copy / "indexplan/reports/benchmark/child.py").read_text()
    version = '{**result, "version": __import__("indexplan").__version__}'
    assert 1 == child.count("json.dumps(result)")
    told = child.replace("json.dumps(result)", f"json.dumps({version})")
    (copy / "indexplan/reports/benchmark/child.py").write_text(told)
    script = f"""
import sys
sys.path.insert(0, {str(copy)!r})
import indexplan as ip
from indexplan.reports.benchmark import measuring
plan = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=8).to_json()
print(measuring._child("first_batch", {{"plan": plan, "columns": []}})["version"])
"""
    path = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path.replace(str(root), "")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "copied\n" == done.stdout


def test_a_child_that_fails() -> None:
    """What goes wrong in the measuring process is told in its last words."""
    with pytest.raises(ip.IndexPlanError) as caught:
        measuring._child("first_batch", {"plan": "no JSON"})
    assert str(caught.value).startswith("the process that measures first_batch must end well; got ")


def test_examples_and_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The examples of its help work; the second one's times are drawn to a new file.

    A wrong path is refused before anything is measured.
    """
    monkeypatch.chdir(tmp_path)
    first, second = examples(page(capsys, "bench"))
    assert second.endswith(" --plot times.png")
    works(first, tmp_path, monkeypatch)
    assert [] == [*tmp_path.iterdir()]
    works(second, tmp_path, monkeypatch)
    assert capsys.readouterr().out.endswith("\n\ntimes.png: the times, drawn\n")
    path = tmp_path / "times.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    words = ("--num-samples", "1e12", "--batch-size", "8", "--plot")
    assert (
        f"indexplan: --plot must be a new file; got {str(path)!r}; "
        "choose another path, or delete the file\n"
    ) == fails(capsys, *words, str(path))
    assert (
        "indexplan: the end of --plot must be .png or .svg or .pdf; got 'times.jpeg'; did you "
        "mean .png? end it with one of these\n"
    ) == fails(capsys, *words, "times.jpeg")


def test_progress_is_shown_to_a_person(tmp_path: Path) -> None:
    """On a terminal, a bar counts the measurements; the answer stays on the other stream.

    The plan leaves the world size open, and is measured for one rank.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "indexplan", "bench", "--num-samples", "1000", "--json"],
        env={**os.environ, "PYTHONPATH": str(root), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=its,
        cwd=tmp_path,
        check=True,
    )
    os.close(its)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "measuring: 100%" in shown
    said = json.loads(done.stdout)
    assert keys() == [row["key"] for row in said["rows"]]
    assert 1 == said["plan"]["world_size"]


def test_a_row() -> None:
    """A row without a time has no cost per index."""
    assert Row("a", "b", None, 5).ns_per_index is None
    assert 200.0 == Row("a", "b", 1e-6, 5).ns_per_index


def test_thread_counts() -> None:
    """Powers of two below the number of cores, and that number."""
    assert [[1], [1, 2], [1, 2, 3], [1, 2, 4, 6]] == [
        machine.thread_counts(n) for n in (1, 2, 3, 6)
    ]


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option of both verbs is explained."""
    for verb in ("bench", "warm-up"):
        with pytest.raises(SystemExit) as caught:
            main([verb, "--help"])
        assert 0 == caught.value.code
        options = capsys.readouterr().out.partition("options:\n")[2]
        entries = [entry for entry in options.split("\n  -") if entry.strip()]
        assert all(len(entry.split()) > 4 for entry in entries), entries
