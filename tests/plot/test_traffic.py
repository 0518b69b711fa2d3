"""The picture of traffic shows live shards of `indexplan.traffic`; the command prints it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from indexplan.cli import main
from tests.support.figures import heading

ORDER = ip.ShardShuffle([16] * 64, lanes=16, stripe=64, seed=3)
PLAN = ip.Plan(ORDER, world_size=8, batch_size=8, remainder="drop")


def test_every_node_is_drawn() -> None:
    """A line for each node, at the height of its live shards; epochs' ends are marked."""
    found = ip.traffic(PLAN, ranks_per_node=2, epochs=range(2))
    figure = plot.traffic(found)
    (axes,) = figure.axes
    lines = [patch for patch in axes.patches if patch.get_label().startswith("node ")]
    assert 4 == len(lines)
    for node, line in enumerate(lines):
        values, edges, _ = line.get_data()  # type: ignore[attr-defined]
        assert found.live_at[:, node].tolist() == values.tolist()
        assert [0, *found.stops.tolist()] == edges.tolist()
    assert [16] == [int(line.get_xdata()[0]) for line in axes.lines]  # type: ignore[index]
    title, caption = heading(figure)
    assert "Traffic: 4 nodes read 64 shards" == title
    assert caption.startswith("The nodes together download the dataset 1.00 times an epoch, and a ")


def test_many_nodes_are_a_band() -> None:
    """From the fewest to the most, and the median; no steps make an empty picture."""
    found = ip.traffic(PLAN, ranks_per_node=1)
    band, median = plot.traffic(found).axes[0].patches
    values, _, baseline = band.get_data()  # type: ignore[attr-defined]
    assert found.live_at.max(axis=1).tolist() == values.tolist()
    assert found.live_at.min(axis=1).tolist() == baseline.tolist()
    middle = np.median(found.live_at, axis=1).tolist()
    assert middle == median.get_data()[0].tolist()  # type: ignore[attr-defined]
    rest = PLAN.cursor(0, step=1)  # what is left of its epoch does not fill a step
    full = PLAN.replace(global_batch_size=ORDER.num_units(0))
    empty = ip.traffic(full.resume(rest))
    assert not plot.traffic(empty).axes[0].patches
    assert (0.0,) == empty.times


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`traffic` prints what the function returns, of a stored plan and of a spec with sizes."""
    root, sizes = str(tmp_path / "a.plan"), str(tmp_path / "sizes.npy")
    ip.save(PLAN, root, epochs=[3])
    words = ["traffic", root, "--ranks-per-node", "2", "--epochs", "2", "--cache", "100"]
    expected = ip.traffic(PLAN, ranks_per_node=2, cache=100, epochs=[3, 4])
    picture = str(tmp_path / "a.png")
    assert 0 == main([*words, "--plot", picture])
    assert f"{expected}\n" == capsys.readouterr().out
    assert Path(picture).stat().st_size > 1000
    assert 0 == main([*words, "--json"])
    assert expected.to_dict() == json.loads(capsys.readouterr().out)
    spec = tmp_path / "a.json"
    spec.write_text(ip.Plan(ip.Shuffle(30), batch_size=2).to_json())
    np.save(sizes, [10, 20])
    assert 0 == main(["traffic", str(spec), "--world-size", "4", "--shards", sizes])
    found = ip.traffic(ip.Plan(ip.Shuffle(30), world_size=4, batch_size=2), [10, 20])
    assert f"{found}\n" == capsys.readouterr().out
    for part, rows in enumerate((10, 20)):
        np.save(tmp_path / f"part-{part}.npy", np.zeros((rows, 2)))
    parts = str(tmp_path / "part-*.npy")
    assert 0 == main(["traffic", str(spec), "--world-size", "4", "--shards", parts])
    assert f"{found}\n" == capsys.readouterr().out


def test_show_tells_what_would_keep_lanes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show` of a plan of shards says where nodes change lanes, for nodes of 8 ranks."""
    spec = tmp_path / "a.json"
    where = ["--column", str(tmp_path / "sizes.npy")]
    np.save(where[1], ORDER.sizes.array)
    for plan in (PLAN, PLAN.replace(batch_size=12)):
        spec.write_text(plan.to_json())
        assert 0 == main(["show", str(spec), *where])
        said = capsys.readouterr().out
        assert (plan is not PLAN) == ("lanes, stripe=" in said or "use lanes=" in said)
        assert 0 == main(["show", str(spec), *where, "--json"])
        advice = ip.traffic(plan).advice
        assert list(advice) == json.loads(capsys.readouterr().out)["locality"]
