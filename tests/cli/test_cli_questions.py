"""The command line's answers about plans that are not stored, samples, and differences."""

import json
from pathlib import Path

import pytest

import indexplan as ip
from tests.cli.test_cli import rows, run

PLAN = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="drop")


@pytest.fixture
def spec(tmp_path: Path) -> str:
    """A file that holds a plan alone."""
    path = tmp_path / "plan.json"
    path.write_text(PLAN.to_json())
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
    path.write_text(PLAN.resume(PLAN.cursor(0, step=1)).to_json())
    said = run(capsys, "show", str(path))
    assert "resumed      (epoch 0, sub_epoch 0, step 1, position 4)\n" in said


def test_show_what_is_far_away_or_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan resumed in a late epoch shows that; of a batch of 1e12 nothing is drawn."""
    path = tmp_path / "late.json"
    path.write_text(PLAN.resume(PLAN.cursor(5, step=1)).to_json())
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
    ip.save(PLAN, tmp_path / "a.plan", epochs=[1, 4])
    said = run(capsys, "explain", str(tmp_path / "a.plan"), "--index", "3")
    assert ["epoch 1", "epoch 4"] == [line.partition(",")[0] for line in said.splitlines()]


def test_diff(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spec against a plan directory: what differs, in words and as JSON; the exit code is 0."""
    ip.save(PLAN.replace(remainder="spread"), tmp_path / "b.plan")
    said = run(capsys, "diff", spec, str(tmp_path / "b.plan"))
    assert "steps            different since epoch 0, sub-epoch 0, step 2\n" in said
    data = json.loads(run(capsys, "diff", spec, spec, "--json", "--epochs", "2"))
    assert data["same"]
    assert [0, 1] == data["epochs"]
