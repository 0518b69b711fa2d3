"""Parts of a build, in any order and at once; builders that are killed at any moment."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import Bins
from tests.support.fresh import ROOT, printed
from tests.support.shell import Shell
from tests.support.trees import PLAN, tree

TWELVE = {"epochs": range(3), "units_per_chunk": 256}  # 3 epochs of 4 chunks


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build that was not parted."""
    path = tmp_path_factory.mktemp("whole") / "a.plan"
    ip.save(PLAN, path, **TWELVE)
    return tree(path)


def build(path: Path, number: int, of: int) -> ip.types.Saved:
    """Build one part."""
    return ip.save(PLAN, path, part=(number, of), **TWELVE)


BINS = ip.Plan(Bins(500), world_size=3, batch_size=7)  # which has files of offsets, too


@given(
    st.permutations(range(1, 14)).flatmap(lambda p: st.integers(1, 13).map(lambda n: p[:n])),
    st.booleans(),
    st.booleans(),
    st.sampled_from([[None], [(2, 2), (1, 2)], [(1, 3), (3, 3), (2, 3)]]),
)
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
def test_parts_make_the_plan(
    tmp_path_factory: pytest.TempPathFactory,
    expected: dict[str, bytes],
    order: list[int],
    bins: bool,
    apart: bool,
    rest: list[tuple[int, int] | None],
) -> None:
    """Parts in any order, also more of them than chunks, end in the files of one build.

    Each writes its own chunks, and shares differ by one at most; before the last part is there, the
    directory is refused, and parts that run again write nothing. They may be built on machines that
    share nothing, and copied together; what is left, by one build, or as another number of parts.
    """
    path, of = tmp_path_factory.mktemp("parts") / "a.plan", len(order)
    numbers = [1 + sorted(order).index(each) for each in order]
    saved = []
    for number in numbers:
        if saved:
            assert (tree(path) == expected) == (12 == sum(part.num_written for part in saved))
        one = path.with_name(f"{number}.plan") if apart else path
        saved.append(build(one, number, of))
        if apart:
            shutil.copytree(one, path, dirs_exist_ok=True)
        if number == 1 + of // 2:
            shutil.copytree(path, path.with_name("rest.plan"))
    assert 12 == sum(part.num_written for part in saved)
    assert {12 // of, -(-12 // of)} >= {part.num_written for part in saved}
    assert expected == tree(path)
    again = build(path, numbers[0], of)
    assert (0, saved[0].num_written) == (again.num_written, again.num_kept)
    assert PLAN == ip.load(path)
    for left in rest:
        ip.save(PLAN, path.with_name("rest.plan"), part=left, **TWELVE)
    assert expected == tree(path.with_name("rest.plan"))
    if bins:
        ip.save(BINS, path.with_name("b.plan"), epochs=range(2), units_per_chunk=50)
        for number in numbers:
            part = (number, of)
            ip.save(BINS, path.with_name("c.plan"), epochs=range(2), units_per_chunk=50, part=part)
        assert tree(path.with_name("b.plan")) == tree(path.with_name("c.plan"))


def test_job_array_of_the_page(tmp_path: Path) -> None:
    """The page's job array, run by a shell as SLURM would, makes the plan."""
    text = (ROOT / "docs/files.md").read_text()
    (script,) = re.findall(r"```sh\n(#!/bin/bash.*?)```", text, re.DOTALL)
    assert "--array=1-16" in script
    short = script.replace("1e12", "1e4 --epochs 4").replace("indexplan", "python -m indexplan")
    (tmp_path / "job").write_text(short)
    python = Path(sys.executable).parent
    jobs = []
    for number in (1, 2):
        environment = {
            **os.environ,
            "PATH": f"{python}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "SLURM_ARRAY_TASK_ID": str(number),
            "SLURM_ARRAY_TASK_COUNT": "2",
        }
        jobs.append(subprocess.Popen(["bash", "job"], cwd=tmp_path, env=environment))  # noqa: S607
    assert [0, 0] == [job.wait() for job in jobs]
    ip.save(ip.Plan(ip.Shuffle(10_000), batch_size=256), tmp_path / "a.plan", epochs=range(4))
    assert tree(tmp_path / "a.plan") == tree(tmp_path / "run.plan")


def test_commands(tmp_path: Path, shell: Shell) -> None:
    """`build --part` says what it did; `--units-per-chunk` gives every part something to build."""
    made = str(tmp_path / "a.plan")
    words = ["build", made, "--num-samples", "1000", "--batch-size", "16"]
    words += ["--units-per-chunk", "2.5e2"]
    said = f"{made}: 1,128 bytes; 1 file written, 0 were there already\n"
    assert said == shell.run(*words, "--part", "4/4")
    counted = {"path": made, "num_bytes": 1128, "num_written": 1, "num_kept": 0}
    found = [shell.json(*words, "--part", f"{number}/4") for number in (2, 3, 1)]
    assert [{**counted, "fingerprint": ip.load(made).fingerprint}] * 3 == found
    plan = ip.Plan(ip.Shuffle(1000), batch_size=16)
    ip.save(plan, tmp_path / "b.plan", units_per_chunk=250)
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")


# Builders that are killed, interrupted or terminated, at any moment, leave nothing wrong.


def test_killed_at_random() -> None:
    """Builders killed at random moments, with links and without, four in five inside `save`."""
    out = printed("-m", "tests.kills", "builders", "40", loud=True)
    kills, at_work, without_links = (
        int(re.search(rf"(?m)^(\d+) {of}", out)[1])  # type: ignore[index]
        for of in ("kills", "of the killed were inside", "of the killed were in a folder")
    )
    assert kills >= 40
    assert at_work >= 0.8 * kills, out
    assert without_links, out
    assert out.endswith(
        "result: every directory ended in the bytes of an undisturbed build, nothing left over\n"
    )


@pytest.mark.parametrize("how", ["links", "renames"])
def test_killed_before_every_call(how: str) -> None:
    """A builder killed before any of its calls, in turn; whether files get names by link or not."""
    calls = [name for name, _ in json.loads(printed("-m", "tests.kills", "calls", how, loud=True))]
    assert {"mkdir", "open", "write", "fsync", "link", "remove"} == set(calls) - {"rename"}
    assert (how == "renames") == ("rename" in calls)
    publishing = "open write fsync link rename open fsync remove"
    publishing = publishing if how == "renames" else publishing.replace(" rename", "")
    assert 3 == " ".join(calls).count(publishing)  # plan.json, a chunk, and its hashes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_command_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    """The command dies of Ctrl-C and of SIGTERM at once, silently; the next run sweeps up."""
    command = [sys.executable, "-m", "indexplan", "build"]
    words = ["--num-samples", "1e6", "--batch-size", "8", "--epochs", "12"]
    builder = subprocess.Popen(
        [*command, tmp_path / "a.plan", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not list(tmp_path.glob("a.plan/epoch-00000/chunk-*")):
        assert builder.poll() is None
    builder.send_signal(number)
    assert (b"", b"") == builder.communicate()
    assert -number == builder.returncode
    with pytest.raises(ip.PlanFileError, match="must have all of its 25 files; got"):
        ip.load(tmp_path / "a.plan")
    plan = ip.Plan(ip.Shuffle(10**6), batch_size=8)
    for name in ("a.plan", "b.plan"):
        ip.save(plan, tmp_path / name, epochs=range(12))
    assert tree(tmp_path / "b.plan") == tree(tmp_path / "a.plan")
