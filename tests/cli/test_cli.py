"""The command line: what it prints, to people and to programs, and how it exits."""

import fcntl
import json
import os
import pty
import re
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

BUILD = ["--num-samples", "1000", "--world-size", "3", "--batch-size", "16", "--sub-epochs", "2"]
PLAN = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=16, sub_epochs=2)


@pytest.fixture
def path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A plan directory made by the command line."""
    made = str(tmp_path / "a.plan")
    assert 0 == main(["build", made, *BUILD, "--epochs", "2"])
    said = capsys.readouterr()
    assert f"{made}: 8,256 bytes; 2 files written, 0 were there already\n" == said.out
    assert "" == said.err
    return made


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that succeeds prints."""
    assert 0 == main(words)
    return capsys.readouterr().out


def fails(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """The one line that a command that fails prints."""
    assert code == main(words)
    said = capsys.readouterr()
    assert "" == said.out
    assert said.err.startswith("indexplan: ")
    assert 1 == said.err.count("\n")
    return said.err[len("indexplan: ") : -1]


def test_build(path: str) -> None:
    """What the command builds is what the library does."""
    assert PLAN == ip.load(path)
    assert (0, 1) == ip.load(path).order.build.epochs


def test_build_again_as_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A second build keeps what is there, and tells programs so."""
    said = json.loads(run(capsys, "build", path, *BUILD, "--epochs", "2", "--json"))
    assert {
        "path": path,
        "num_bytes": 8256,
        "num_written": 0,
        "num_kept": 2,
        "fingerprint": PLAN.fingerprint,
    } == said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--batch-size", "(5, 3)"], ip.Plan(ip.Shuffle(100), batch_size=(5, 3))),
        (
            ["--order", "BlockShuffle(block_size=10, window=3, seed=7)",
             "--global-batch-size",
             "[Phase(0, 8), Phase(50, 16, {'resolution': 192, 'name': 'x'})]",
             "--remainder", "pad"],
            ip.Plan(
                ip.BlockShuffle(100, 10, window=3, seed=7),
                global_batch_size=[
                    ip.Phase(0, 8),
                    ip.Phase(50, 16, {"resolution": 192, "name": "x"}),
                ],
                remainder="pad",
            ),
        ),
        (
            ["--order", "Sequential()", "--sub-epochs", "3",
             "--batch-size", "[Phase(0, 4), ip.Phase(at=(1, 2), size=8)]"],
            ip.Plan(
                ip.Sequential(100),
                batch_size=[ip.Phase(0, 4), ip.Phase((1, 2), 8)],
                sub_epochs=3,
            ),
        ),
    ],
)  # fmt: skip
def test_build_options(tmp_path: Path, options: list[str], expected: ip.Plan) -> None:
    """Every option of build reaches the plan."""
    assert 0 == main(["build", str(tmp_path / "a"), "--num-samples", "1e2", *options])
    assert expected == ip.load(tmp_path / "a")


def rows(said: str) -> list[list[str]]:
    """The rows of the table of epochs."""
    return [line.split() for line in said.splitlines() if line.strip()[:1].isdigit()]


def test_show(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan in words: its spec, its files, and what becomes of each epoch's units."""
    header = "epoch   steps      read dropped padded  batches   per rank"
    row = "          22     1,000       0      0 15 to 16 333 to 334"
    assert (
        "order        shuffle-v1(num_samples 1000, seed 0)\n"
        "unit         one sample (this order makes no bins)\n"
        "world_size   3\n"
        "batch_size   16\n"
        "sub_epochs   2\n"
        "remainder    spread: every unit is read once; batches may be one smaller\n"
        "dataset      none remembered\n"
        "files        2 epochs, 8,256 bytes\n"
        f"fingerprint  {PLAN.fingerprint}\n"
        "\n"
        f"{header}\n"
        f"0{row}\n"
        f"1{row}\n"
    ) == run(capsys, "show", path)
    data = json.loads(run(capsys, "show", path, "--json"))
    assert PLAN == ip.Plan.from_json(json.dumps(data["plan"]))
    assert [1000, 1000] == [account["num_read"] for account in data["accounts"]]


def test_show_many_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of many epochs the first are shown, and the rest is counted."""
    run(capsys, "build", str(tmp_path / "a"), *BUILD, "--epochs", "15")
    assert "   ... 3 more; show one with --epoch\n" in run(capsys, "show", str(tmp_path / "a"))


def test_show_sub_epoch(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One sub-epoch has its own account."""
    said = run(capsys, "show", path, "--epoch", "1", "--sub-epoch", "1")
    assert [["1", "11", "500", "0", "0", "15", "to", "16", "166", "to", "167"]] == rows(said)


def test_show_what_is_not_stored(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An epoch that the directory does not hold is computed from the order."""
    said = run(capsys, "show", path, "--epoch=7", "--sub-epoch=0", "--step=0", "--rank=0")
    assert f"{' '.join(map(str, PLAN.batch(7, 0, step=0, rank=0)))}\n" == said


def test_show_step(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A step in words and as JSON, with the cursor to resume from."""
    where = ["show", path, "--epoch", "1", "--sub-epoch", "0", "--step", "4"]
    assert (
        "units over all ranks  46\nunits of each rank    15 16 15\n"
        "phase                 (at 0, size 16, parameters ())\n"
    ) == run(capsys, *where)
    data = json.loads(run(capsys, *where, "--json"))
    assert PLAN.cursor(1, 0, step=4) == ip.Cursor.from_dict(data["cursor"])


def test_show_batch(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch is its indices."""
    where = ["--epoch", "1", "--sub-epoch", "1", "--step", "4", "--rank", "2"]
    batch = PLAN.batch(1, 1, step=4, rank=2).tolist()
    assert " ".join(map(str, batch)) + "\n" == run(capsys, "show", path, *where)
    data = json.loads(run(capsys, "show", path, *where, "--json"))
    assert {"indices": batch, "num_valid": len(batch)} == data


def test_show_batch_of_bins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each bin; as JSON, where each starts; of pieces of samples, which parts."""
    made = str(tmp_path / "a")
    where = ["--epoch", "0", "--step", "0", "--rank", "0"]
    for order in (
        ip.Grouped([0, 1, 0, 1, 0], {0: 2, 1: 1}),
        ip.DocumentWindows([4, 9, 5], 3, block_size=2),
    ):
        plan = ip.Plan(order, world_size=1, batch_size=3)
        ip.save(plan, made, epochs=[0])
        batch = plan.units(0, step=0, rank=0)
        bins = batch.bins
        words = [[str(sample) for sample in each.tolist()] for each in bins]
        expected: dict[str, Any] = {
            "indices": batch.samples.tolist(),
            "num_valid": len(bins),
            "offsets": batch.offsets.tolist(),
        }
        if order.traits.cuts_samples:
            words = [[f"{i}[{low}:{high}]" for i, low, high in each.tolist()] for each in bins]
            expected["spans"] = [row[1:] for each in bins for row in each.tolist()]
        shown = run(capsys, "show", made, *where)
        assert [" ".join(each) for each in words] == shown.splitlines()
        assert expected == json.loads(run(capsys, "show", made, *where, "--json"))
        shutil.rmtree(made)


def test_locate(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The step and rank that read a sample, in words and as JSON."""
    where = PLAN.locate(123, 1)
    assert (
        f"epoch 1, sub-epoch {where.sub_epoch}, step {where.step}, rank {where.rank}, "
        f"slot {where.slot}\n"
    ) == run(capsys, "locate", path, "--index", "123", "--epoch", "1")
    data = json.loads(run(capsys, "locate", path, "--index", "123", "--epoch", "1", "--json"))
    assert where._asdict() == data


def test_locate_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample that nobody reads is said to be so."""
    made = str(tmp_path / "a")
    run(capsys, "build", made, *BUILD, "--remainder", "drop", "--order", "Sequential()")
    assert "no step reads sample 999 in epoch 0\n" == (
        run(capsys, "locate", made, "--index", "999", "--epoch", "0")
    )


def test_verify(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that is right exits with 0, and one byte changed with 1."""
    assert "ok  every byte of every chunk is what the order generates (8,256)\n" in (
        run(capsys, "verify", path)
    )
    chunk = Path(path) / "epoch-00001/chunk-00000.npy"
    data = bytearray(chunk.read_bytes())
    data[128] ^= 1
    chunk.write_bytes(data)
    assert 1 == main(["verify", path])
    assert "BAD every byte of every chunk" in capsys.readouterr().out
    assert 1 == main(["verify", path, "--json"])
    assert not json.loads(capsys.readouterr().out)["ok"]


def test_verify_open_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that leaves its world size open is verified all the same."""
    run(capsys, "build", str(tmp_path / "a"), "--num-samples", "50", "--batch-size", "4")
    assert "ok " in run(capsys, "verify", str(tmp_path / "a"))
    said = run(capsys, "show", str(tmp_path / "a"))
    assert "\nworld_size is open: to see steps, name one with --world-size\n" in said
    said = run(capsys, "show", str(tmp_path / "a"), "--world-size", "2")
    assert [["0", "7", "50", "0", "0", "3", "to", "4", "25"]] == rows(said)
    where = ["--index", "7", "--epoch", "0"]
    assert "must be set" in fails(capsys, 2, "locate", str(tmp_path / "a"), *where)
    run(capsys, "locate", str(tmp_path / "a"), *where, "--world-size", "2")


def test_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder gives the number of samples, names a batch's files, and is watched for changes."""
    root = tmp_path / "data"
    root.mkdir()
    for number in range(10):
        (root / f"{number}.txt").write_text("x" * number)
    (root / "notes.md").write_text("")
    made, dataset = str(tmp_path / "a"), ["--dataset", str(root)]
    run(
        capsys,
        "build",
        made,
        *dataset,
        "--pattern",
        "*.txt",
        "--world-size",
        "2",
        "--batch-size",
        "5",
    )
    assert "dataset      10 files by *.txt, 45 bytes\n" in run(capsys, "show", made, *dataset)
    batch = ["--epoch", "0", "--step", "0", "--rank", "1"]
    expected = ip.load(made).batch(0, step=0, rank=1).tolist()
    said = run(capsys, "show", made, *dataset, *batch)
    assert [f"{index}  {index}.txt" for index in expected] == [s.strip() for s in said.splitlines()]
    assert "ok " in run(capsys, "verify", made, *dataset)
    (root / "5.txt").write_text("rewritten")
    for verb in ("show", "verify"):
        said = fails(capsys, 1, verb, made, *dataset)
        assert "it had 45 bytes, has 49; sizes of files changed" in said


def test_array_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A .npy file gives its number of rows."""
    np.save(tmp_path / "rows.npy", np.zeros((30, 2)))
    made = str(tmp_path / "a")
    run(capsys, "build", made, "--dataset", str(tmp_path / "rows.npy"), "--batch-size", "5")
    assert 30 == ip.load(made).order.num_samples
    assert "dataset      30 rows, dtype <f8, shape (30, 2), row-major, 608 bytes\n" in (
        run(capsys, "show", made)
    )


@pytest.mark.slow
def test_as_a_program(path: str) -> None:
    """`python -m indexplan` is the same command line, and stops quietly when its reader does."""
    command = f"{sys.executable} -m indexplan show {path} --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)  # noqa: S602
    assert ("{", "") == (done.stdout, done.stderr)


def seen_at_a_terminal(*arguments: str) -> str:
    """What the command writes to stderr where that is a terminal, of 80 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "indexplan", *arguments]
    others = ("COLUMNS", "NO_COLOR")  # which would say something else of the terminal
    where = {name: value for name, value in os.environ.items() if name not in others}
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env={**where, "TERM": "xterm"}
    )
    os.close(follower)
    said = b""
    while True:
        try:
            more = os.read(leader, 4096)
        except OSError:  # the terminal's other end has closed
            break
        if not more:
            break
        said += more
    os.close(leader)
    assert 0 == child.wait()
    return said.decode()


def test_progress(tmp_path: Path) -> None:
    """Somebody at a terminal sees how far a verb is, how fast, and how long it will take."""
    path = str(tmp_path / "a")
    said = seen_at_a_terminal("build", path, *BUILD)
    assert "building: 100%" in said
    assert "idx/s]" in said
    ip.save(ip.Plan(ip.Shuffle(5_000_000), world_size=2, batch_size=1000), tmp_path / "b")
    said = seen_at_a_terminal("verify", str(tmp_path / "b"))
    bars = re.findall(r"verifying: +(\d+)%.*?\[(\d\d:\d\d)<(\d\d:\d\d|\?), +(\S+B/s)", said)
    assert "0" == bars[0][0]
    assert ("100", "00:00") == (bars[-1][0], bars[-1][2])
    assert re.fullmatch(r"[\d.]+[kMG]?B/s", bars[-1][3])


SPEC = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="drop")


@pytest.fixture
def spec(tmp_path: Path) -> str:
    """A file that holds a plan alone."""
    path = tmp_path / "plan.json"
    path.write_text(SPEC.to_json())
    return str(path)


def test_show_a_spec(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that is not stored is shown as far as it goes."""
    said = run(capsys, "show", spec)
    assert "files        none (the plan isn't stored)\n" in said
    assert ["2", "2", "8", "3", "0", "2", "4"] == rows(said)[-1]
    data = json.loads(run(capsys, "show", spec, "--json"))
    assert [3, 3, 3] == [account["num_dropped"] for account in data["accounts"]]


def test_show_a_resumed_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that goes on shows from where."""
    path = tmp_path / "rest.json"
    path.write_text(SPEC.resume(SPEC.cursor(0, step=1)).to_json())
    said = run(capsys, "show", str(path))
    assert "resumed      (epoch 0, sub_epoch 0, step 1, position 4)\n" in said


def test_show_what_is_far_away_or_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan resumed in a late epoch shows that; of a batch of 1e12 nothing is drawn."""
    path = tmp_path / "late.json"
    path.write_text(SPEC.resume(SPEC.cursor(5, step=1)).to_json())
    assert ["5", "6", "7"] == [row[0] for row in rows(run(capsys, "show", str(path)))]
    said = run(capsys, "explain", str(path), "--index", "5")
    assert ["epoch 5", "epoch 6", "epoch 7"] == [s.partition(",")[0] for s in said.splitlines()]
    path = tmp_path / "large.json"
    path.write_text(ip.Plan(ip.Sequential(10**12), world_size=1, batch_size=10**12).to_json())
    assert ["0", "1", "1,000,000,000,000"] == rows(run(capsys, "show", str(path)))[0][:3]


def test_explain(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A sample's life, in words and as JSON."""
    dropped = 'dropped: the last 3 of 11 units do not fill a global batch, and remainder is "drop"'
    assert f"epoch 0, position 9: {dropped}\n" == run(
        capsys, "explain", spec, "--index", "9", "--epochs", "1"
    )
    assert (
        "epoch 2, position 3: step 0, rank 1, slot 1"
        == (run(capsys, "explain", spec, "--index", "3").splitlines()[-1])
    )
    data = json.loads(run(capsys, "explain", spec, "--index", "3", "--json"))
    assert {"epoch": 0, "sub_epoch": 0, "step": 0, "rank": 1, "slot": 1} == (
        data["readings"][0]["where"]
    )
    said = run(capsys, "explain", spec, "--index", "3", "--epochs", "1", "--world-size", "4")
    assert "epoch 0, position 3: step 0, rank 1, slot 1\n" == said


def test_explain_reads_the_stored_epochs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a plan directory, the epochs that are stored."""
    ip.save(SPEC, tmp_path / "a.plan", epochs=[1, 4])
    said = run(capsys, "explain", str(tmp_path / "a.plan"), "--index", "3")
    assert ["epoch 1", "epoch 4"] == [line.partition(",")[0] for line in said.splitlines()]


def test_diff(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spec against a plan directory: what differs, in words and as JSON; the exit code is 0."""
    ip.save(SPEC.replace(remainder="spread"), tmp_path / "b.plan")
    said = run(capsys, "diff", spec, str(tmp_path / "b.plan"))
    assert "steps            different since epoch 0, sub-epoch 0, step 2\n" in said
    data = json.loads(run(capsys, "diff", spec, spec, "--json", "--epochs", "2"))
    assert data["same"]
    assert [0, 1] == data["epochs"]
