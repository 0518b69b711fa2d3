"""The examples under docs/examples, and the tutorial's scripts, in real processes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import indexplan as ip
from tests.support.remote import server, store
from tests.support.units import micro_batches
from tests.trainers.launching import found, in_ranks, run
from tests.trainers.ranks import ROOT

__all__ = ["server"]  # a fixture

PAGE = (ROOT / "docs" / "tutorials" / "first-run.md").read_text()


def test_digits(tmp_path: Path) -> None:
    """One, two and three ranks train the same net, and evaluate it the same, without repeats."""
    said, weights = [], []
    for world_size in (1, 2, 3):
        file = tmp_path / f"{world_size}.pt"
        said.append(in_ranks(tmp_path, world_size, "digits.py", "--save", file))
        weights.append(torch.load(file))
        assert f"ranks: {world_size}" == said[-1].pop(0)
        for name, expected in weights[0].items():
            torch.testing.assert_close(weights[-1][name], expected, rtol=1e-9, atol=1e-12)
    assert [said[0]] * 3 == said
    assert "evaluated: 397 samples, each 1 to 1 times" == said[0][1]
    (right,) = found(r"^right: (\d+)$", said[0])
    assert int(right[0]) > 330


def test_augmentation_streams(tmp_path: Path) -> None:
    """Every rank reads the plan; every rank, worker and epoch draws noise of its own."""
    lines = in_ranks(tmp_path, 2, "augmentation_streams.py")
    plan = ip.Plan(ip.Shuffle(24, seed=7), world_size=2, batch_size=3)
    steps = [(e, s, r) for r in range(2) for e in range(2) for s in range(4)]
    expected = [
        f"epoch {epoch} step {step} rank {rank} reads "
        f"{plan.batch(epoch, step=step, rank=rank).tolist()}"
        for epoch, step, rank in steps
    ]
    assert expected == lines[:-1:2]
    streams = [
        ip.worker_seed(7, epoch=epoch, rank=rank, worker=step % 2) for epoch, step, rank in steps
    ]
    assert 8 == len(set(streams))
    assert streams == [int(value) for (value,) in found(r"seed (\d+)$", lines)]
    assert "48 different values of noise in 48 samples" == lines[-1]


def test_sub_epochs(tmp_path: Path) -> None:
    """Stopped in sub-epoch 17 on two ranks, resumed on three: every sample exactly once."""
    checkpoint = tmp_path / "run.pt"
    plan = ip.Plan(ip.Shuffle(1009, seed=1), world_size=2, batch_size=4, sub_epochs=40)
    pattern = r"^sub-epoch (\d+): (\d+) steps, (\d+) samples read so far, .* over 101 test samples"

    lines = in_ranks(tmp_path, 2, "sub_epochs.py", "--checkpoint", checkpoint, "--max-steps", 70)
    sub_epoch, step, read = 0, 70, []
    while step > plan.steps(0, sub_epoch).stop:
        step -= plan.steps(0, sub_epoch).stop
        read += [plan.indices(0, sub_epoch, rank=rank) for rank in range(2)]
        expected = (sub_epoch, plan.steps(0, sub_epoch).stop, sum(map(len, read)))
        assert expected == tuple(map(int, found(pattern, lines)[sub_epoch]))
        sub_epoch += 1
    read += [plan.indices(0, sub_epoch, rank=rank, stop_step=step) for rank in range(2)]
    once = np.bincount(np.concatenate(read), minlength=1009).tolist()
    assert (17, 2, 1) == (sub_epoch, step, max(once))
    assert "2 ranks start at sub-epoch 0, step 0" == lines[0]
    assert f"stopped in sub-epoch 17, with {sum(once)} samples read" == lines[-2]
    assert once == torch.load(checkpoint)["times_read"].tolist()

    lines = in_ranks(tmp_path, 3, "sub_epochs.py", "--checkpoint", checkpoint)
    rest = plan.replace(world_size=3).resume(plan.cursor(0, sub_epoch, step=step))
    assert "3 ranks start at sub-epoch 17, step 2" == lines[0]
    expected = [(s, rest.steps(0, s).stop) for s in range(17, 40)]
    assert expected == [(int(s), int(steps)) for s, steps, _ in found(pattern, lines)]
    assert "each sample was read 1 to 1 times" == lines[-1]
    assert [1] * 1009 == torch.load(checkpoint)["times_read"].tolist()


def test_batch_of_batches(tmp_path: Path) -> None:
    """Lightning's default Trainer gives each of its two ranks the plan's 5 groups of 3."""
    lines = in_ranks(tmp_path, 2, "batch_of_batches.py")
    plan = ip.Plan(ip.Shuffle(110, seed=0), world_size=2, batch_size=(5, 3), remainder="pad")
    expected = []
    for epoch, step, rank in np.ndindex(2, 4, 2):
        groups = micro_batches(plan.units(epoch, step=step, rank=rank))
        said = [group.tolist() for group in groups]
        expected.append(f"epoch {epoch} step {step} rank {rank}: {said}")
    assert expected == [line for line in lines if line.startswith("epoch")]
    assert "8 steps; an epoch has 10 padded samples" == lines[-1]


def test_progressive_resizing(tmp_path: Path) -> None:
    """Every epoch has the plan's steps and sizes, whatever the one before had, and is validated."""
    lines = in_ranks(tmp_path, 2, "progressive_resizing.py")
    phases = [
        ip.Phase(at=0, size=32, parameters={"resolution": 8}),
        ip.Phase(at=450, size=16, parameters={"resolution": 12}),
        ip.Phase(at=(2, 0), size=8, parameters={"resolution": 16}),
        ip.Phase(at=(3, 0), size=24, parameters={"resolution": 16}),
    ]
    plan = ip.Plan(ip.Shuffle(300, seed=0), world_size=2, batch_size=phases)
    expected, steps, resolution = [], 0, None
    for epoch in range(4):
        for step in range(plan.steps(epoch).stop):
            now = plan.units(epoch, step=step, rank=0).phase["resolution"]
            if step == 0 or now != resolution:
                size = len(plan.batch(epoch, step=step, rank=0))
                expected.append((epoch, step, size, now, now))
            resolution = now
            steps += 1
        expected.append((steps, 101))
    pattern = r"^epoch (\d) from step (\d+): (\d+) images a rank, (\d+) x (\d+) pixels$"
    said = []
    for line in lines:
        said += found(pattern, [line]) or found(r"^after (\d+) steps: \d+ of (\d+) right$", [line])
    assert expected == [tuple(map(int, numbers)) for numbers in said]
    assert [(0, 0), (1, 0), (1, 3), (2, 0), (3, 0)] == [n[:2] for n in expected if len(n) > 2]
    assert [5, 12, 31, 38] == [n[0] for n in expected if len(n) == 2]


def test_mixture(tmp_path: Path) -> None:
    """Stopped on two ranks, resumed on three with other shares: each source goes on in its row."""
    checkpoint = tmp_path / "run.pt"
    shares, samples = [], []
    for world_size, options in (
        (2, ["--max-steps", 40]),
        (3, ["--max-steps", 88, "--weights", 0.4, 0.3, 0.3]),
    ):
        command = [*options, "--checkpoint", checkpoint]
        lines = in_ranks(tmp_path, world_size, "mixture.py", *command)
        assert f"{world_size} ranks start after {len(samples)} steps" == lines[0]
        for text, read in found(r"^step \d+: (.*); \[(.*)\]$", lines):
            assert "at loss" in text
            shares.append([int(share) for (share,) in found(r"of (\d+)%", text.split(", "))])
            counts = [int(count) for (count,) in found(r"(\d+) of", text.split(", "))]
            samples.append([int(number) for number in read.split(", ")])
            assert np.histogram(samples[-1], [0, 700, 1000, 1061])[0].tolist() == counts
    assert [[70, 20, 10]] * 40 + [[40, 30, 30]] * 48 == shares
    times = np.bincount(np.concatenate(samples), minlength=1061)
    parts = np.split(times, [700, 1000])
    before, after = (sum(map(len, some)) for some in (samples[:40], samples[40:]))
    for part, old, new in zip(parts, (0.7, 0.2, 0.1), (0.4, 0.3, 0.3), strict=True):
        assert abs(part.sum() - old * before - new * after) < 4  # two phases, each within 2
        assert part.max() - part.min() <= 1  # none again before all were read


def test_token_windows(tmp_path: Path) -> None:
    """Stopped in the second epoch on two ranks, resumed on three: every target exactly once."""
    checkpoint = tmp_path / "run.pt"
    order = ip.TokenWindows(10_007, 32, seed=1)
    plan = ip.Plan(order, world_size=2, global_batch_size=12)
    stop = plan.steps(0).stop + 10
    windows = sum(plan.step_size(1, step=step) for step in range(10))

    lines = in_ranks(
        tmp_path, 2, "token_windows.py", "--checkpoint", checkpoint, "--max-steps", stop
    )
    assert "2 ranks start at epoch 0, step 0" == lines[0]
    full = len(order.targets(0))
    assert f"epoch 0: {full} of {full} targets once; 0 other reads" == lines[-2]
    assert f"epoch 1: {windows * 32} of {full} targets once; 0 other reads" == lines[-1]

    lines = in_ranks(tmp_path, 3, "token_windows.py", "--checkpoint", checkpoint)
    assert "3 ranks start at epoch 1, step 10" == lines[0]
    expected = [f"epoch {epoch}: {full} of {full} targets once; 0 other reads" for epoch in (0, 1)]
    assert expected == lines[-2:]
    times = torch.load(checkpoint)["times"]
    for epoch in (0, 1):
        assert list(order.targets(epoch)) == times[epoch].nonzero().flatten().tolist()
    (loss,) = found(r"^epoch 1: loss (\S+) after", lines)
    assert float(loss[0]) < 2  # of 50 tokens, ln 50 = 3.9 at first, and ln 3 = 1.1 at best


@pytest.mark.parametrize(
    ("name", "stop", "num", "apart"),
    [
        ("speech_buckets.py", 9, 500, 1e-12),
        ("aspect_ratios.py", 20, 601, 1e-12),
        ("sft_packing.py", 15, 400, 1e-6),  # whose norms are computed in float32
    ],
)
def test_bins(tmp_path: Path, name: str, stop: int, num: int, apart: float) -> None:
    """Stopped on two ranks, resumed on three: to rounding, what one process learns."""
    alone, checkpoint = tmp_path / "alone.pt", tmp_path / "run.pt"
    in_ranks(tmp_path, 1, name, "--checkpoint", alone)
    in_ranks(tmp_path, 2, name, "--checkpoint", checkpoint, "--max-steps", stop)
    times = torch.load(checkpoint)["times"]
    assert (num, 1) == (times[0].sum(), times.max())
    assert 0 < times[1].sum() < num
    lines = in_ranks(tmp_path, 3, name, "--checkpoint", checkpoint)
    assert found(r"^3 ranks start at epoch 1, step \d+()$", lines)
    differences = found(r"in one row and alone differ by less than (\S+)$", lines)
    assert (name == "sft_packing.py") is bool(differences)
    assert all(float(difference) < apart for (difference,) in differences)
    expected, read = torch.load(alone), torch.load(checkpoint)
    assert torch.equal(torch.ones(2, num, dtype=torch.int64), read["times"])
    assert torch.equal(expected["times"], read["times"])
    for weights, other in zip(expected["model"].values(), read["model"].values(), strict=True):
        torch.testing.assert_close(weights, other, rtol=1e-9, atol=apart)


# --- the first tutorial's scripts, as a newcomer runs them: started, stopped, and resumed


def steps_after(plan: ip.Plan, cursor: ip.Cursor, world_size: int, epochs: range) -> int:
    """The steps of some epochs that are left after a cursor, on other ranks."""
    rest = plan.replace(world_size=world_size).resume(cursor)
    return sum(rest.steps(epoch).stop - rest.steps(epoch).start for epoch in epochs)


def test_lightning_images(tmp_path: Path) -> None:
    """Stopped in the second epoch on one device; two read what is left, and no more."""
    script = "lightning_images.py"
    lines = in_ranks(tmp_path, 1, script, "--devices", 1, "--max-steps", 30)
    assert [("30",)] == found(r"^(\d+) steps, .*accuracy", lines)
    lines = run(tmp_path, [sys.executable], script, "--devices", 2)
    assert "2 devices start after 30 steps" in lines
    plan = ip.Plan(ip.Shuffle(1400, seed=0), world_size=1, global_batch_size=60)
    left = steps_after(plan, plan.cursor(1, step=30 - plan.steps(0).stop), 2, range(1, 3))
    ((steps, accuracy),) = found(r"^(\d+) steps, .*accuracy.*tensor\((\S+)\)", lines)
    assert 30 + left == int(steps)
    assert float(accuracy) > 0.8


def test_three_corpora(tmp_path: Path) -> None:
    """Each corpus has its share of the windows, to within two, before the stop and after it."""
    lines = in_ranks(tmp_path, 2, "three_corpora.py", "--max-steps", 40)
    lines += in_ranks(tmp_path, 3, "three_corpora.py")
    assert "\n".join(lines) in PAGE
    assert [("2", "40"), ("3", "90")] == found(r"^(\d) ranks, up to step (\d+): ", lines)


def test_hf_imbalanced(tmp_path: Path) -> None:
    """Each class is read equally often; two ranks go on where one has stopped."""
    lines = in_ranks(tmp_path, 1, "hf_imbalanced.py", "--max-steps", 30)
    assert lines[-1] in PAGE.splitlines()
    lines = in_ranks(tmp_path, 2, "hf_imbalanced.py")
    labels = [0] * 900 + [1] * 90 + [2] * 10
    plan = ip.Plan(ip.ClassBalanced(labels, seed=0), world_size=1, batch_size=12)
    left = steps_after(plan, plan.cursor(0, step=30), 2, range(2))
    assert [(str(30 + left),)] == found(r"^(\d+) steps, ", lines)


@pytest.mark.usefixtures("server")
def test_s3_shards(tmp_path: Path) -> None:
    """Stopped on two ranks, gone on with on three: all full batches of the epoch are read."""
    url, command = "s3://bucket/*.parquet", [sys.executable, "-m", "indexplan", "shards"]
    for name in range(24):
        file = tmp_path / f"{name:02}.parquet"
        pq.write_table(pa.table({"x": np.arange(40.0) / 40}), file)
        store().put(str(file), f"bucket/{file.name}")
    with (tmp_path / "shards.json").open("w") as file:
        subprocess.run([*command, url, "--json"], check=True, stdout=file)

    lines = run(tmp_path, [sys.executable], "s3_shards.py", url, "--traffic", 16)
    assert "2 nodes of 8 ranks, 24 shards, 960 samples" == lines[0]
    lines = in_ranks(tmp_path, 2, "s3_shards.py", url, "--max-steps", 9)
    lines += in_ranks(tmp_path, 3, "s3_shards.py", url)
    assert ["2 ranks, up to step 9: 432 samples", "3 ranks, up to step 20: 528 samples"] == lines
