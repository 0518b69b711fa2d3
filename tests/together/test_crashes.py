"""Builders that are killed, interrupted or terminated, at any moment, leave nothing wrong."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import indexplan as ip
from tests.kills import check_power_cuts
from tests.support.builders import KINDS, digests
from tests.support.children import in_child

ROOT = Path(__file__).parents[2]


def script(*words: str) -> str:
    """The output of a script of tests, which has to succeed."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def test_killed_at_random() -> None:
    """Builders killed at random moments, with links and without, four in five inside `save`."""
    out = script("tests.kills", "builders", "60")
    kills, at_work, without_links = (
        int(re.search(rf"(?m)^(\d+) {of}", out)[1])  # type: ignore[index]
        for of in ("kills", "of the killed were inside", "of the killed were in a folder")
    )
    assert kills >= 60
    assert at_work >= 0.8 * kills, out
    assert without_links, out
    assert out.endswith(
        "result: every directory ended in the bytes of an undisturbed build, nothing left over\n"
    )


@pytest.mark.parametrize("how", ["links", "renames"])
def test_killed_before_every_call(how: str) -> None:
    """A builder killed before any of its calls, in turn; whether files get names by link or not."""
    calls = [name for name, _ in json.loads(script("tests.kills", "calls", how))]
    assert {"mkdir", "open", "write", "fsync", "link", "remove"} == set(calls) - {"rename"}
    assert (how == "renames") == ("rename" in calls)
    publishing = "open write fsync link rename open fsync remove"
    publishing = publishing if how == "renames" else publishing.replace(" rename", "")
    assert 3 == " ".join(calls).count(publishing)  # plan.json, a chunk, and its hashes


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        (3, "a.plan/plan.json got its name before its content was synced"),
        (6, "['a.plan/plan.json'] can still vanish when the build is done"),
    ],
)
def test_check_of_power_cuts(left_out: int, said: str) -> None:
    """A build that leaves out one of its syncs does not pass the check of power cuts."""
    calls = [
        ("open", "a.plan/.1.tmp"),
        ("write", ""),
        ("fsync", ""),
        ("link", "a.plan/plan.json"),
        ("open", "a.plan"),
        ("fsync", ""),
    ]
    check_power_cuts(calls)
    with pytest.raises(AssertionError, match=f"^{re.escape(said)}"):
        check_power_cuts(calls[: left_out - 1] + calls[left_out:])


def save_overtaken(root: Path, part: tuple[int, int] | None, name: str) -> bool:
    """Build; just before a file gets its name, another builder finishes and sweeps up."""
    overtaken = False

    def event(call: str, arguments: tuple[object, ...]) -> None:
        nonlocal overtaken
        if call == "os.link" and not overtaken and str(arguments[1]).endswith(name):
            overtaken = True
            KINDS["many"].save(root)

    sys.addaudithook(event)
    KINDS["many"].save(root, part=part)
    return overtaken


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (None, "plan.json"),
        (None, "chunk-00003.npy"),
        (None, "chunk-00003.xxh64"),
        ((2, 2), "chunk-00003.npy"),
        ((2, 2), "chunk-00003.xxh64"),
    ],
)
def test_overtaken(tmp_path: Path, part: tuple[int, int] | None, name: str) -> None:
    """A builder whose file is swept up before it has its name, as the plan is done, succeeds."""
    assert in_child(save_overtaken, tmp_path / "a.plan", part, name)
    KINDS["many"].save(tmp_path / "b.plan")
    assert digests(tmp_path / "b.plan") == digests(tmp_path / "a.plan")


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
    assert digests(tmp_path / "b.plan") == digests(tmp_path / "a.plan")
