"""Each verb on plans by weight, by class, of several sources, and of pieces of samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.support.shell import Shell

LABELS = [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]
WEIGHTS = [0.5, 2, 1, 0, 1, 1, 1, 3, 0.25, 1]
ORDERS = {
    "weighted": "Weighted('weights.npy', epoch_size=30)",
    "class-balanced": "ClassBalanced('labels.npy')",
    "class-batches": "ClassBatches('labels.npy', classes=2, per_class=2)",
    "local-shuffle": "LocalShuffle(window=4)",
    "mixture": (
        "Mixture({'web': Shuffle(6), 'code': Weighted([(0, 'few.npy'), (1, [1, 1, 1, 9])])}, "
        "{'web': 0.7, 'code': 0.3})"
    ),
    "epochs": "Epochs(ClassBalanced('labels.npy'), 7)",
    "repeat": "Repeat(Subset(Shuffle(9), range(9), 10), 2, span=4)",
}


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("name", ORDERS)
def test_every_verb(name: str, shell: Shell) -> None:
    """Built, shown, explained, verified and drawn, with names, when the columns are gone."""
    np.save("weights.npy", WEIGHTS)
    np.save("labels.npy", LABELS)
    np.save("few.npy", [1.0, 2.0, 0.0, 4.0])
    options = ["--num-samples", "10", "--world-size", "2", "--batch-size", "2", "--epochs", "2"]
    shell.run("build", "a.plan", "--order", ORDERS[name], *options)
    for column in ("weights.npy", "labels.npy", "few.npy"):
        Path(column).unlink()
    plan = ip.load("a.plan")
    assert name in plan.order.to_dict()["algorithm"]
    names = plan.order.group_names
    shown = shell.run("show", "a.plan")
    assert all(f"\n{each} " in shown for each in names)
    assert f"order        {plan.order.to_dict()['algorithm']}(" in shown
    even = "\nshares       each source stays within 0.90 samples of its own\n"
    assert (name == "mixture") == (even in shown)
    explained = shell.run("explain", "a.plan", "--index", "7")
    group = names[plan.order.group_of(7)] if names else ""
    group = f"group {group}" if group.isdigit() else group  # of a class, whose name is its label
    assert not names or f", of {group}: " in explained
    said = shell.run("verify", "a.plan")
    assert "ok  every byte of every chunk is what the order generates" in said
    shell.run("plot", "a.plan", "-o", "a.png")
    assert Path("a.png").stat().st_size > 1000
    if names:
        assert str(ip.draws(plan)) in shell.run("show", "a.plan")


LENGTHS = np.arange(1, 90) % 31 + 1


def test_a_document_is_explained(shell: Shell) -> None:
    """All parts of it are named, and together they are all of it; `locate` finds the first."""
    np.save("lengths.npy", LENGTHS)
    order = "DocumentWindows('lengths.npy', 24, block_size=8, seed=1)"
    options = ["--world-size", "2", "--batch-size", "3", "--epochs", "2"]
    shell.run("build", "a.plan", "--order", order, *options)
    shell.run("verify", "a.plan")
    windows = ip.DocumentWindows(LENGTHS, 24, block_size=8, seed=1)
    plan = ip.Plan(windows, world_size=2, batch_size=3)
    assert LENGTHS[29] == 31
    lines = shell.run("explain", "a.plan", "--index", "29", "--epochs", "2").splitlines()
    for epoch in (0, 1):
        parts = [reading.span for reading in ip.explain(plan, 29, [epoch])]
        positions = plan.order.locate_all(epoch, 29)[0].tolist()
        assert len(parts) == len(positions) >= 2
        tokens = {i for part in parts if part for i in range(*part)}
        assert set(range(31)) == tokens
        for position, (start, stop) in zip(positions, filter(None, parts), strict=True):
            said = f"epoch {epoch}, position {position}, part [{start}, {stop}): "
            assert 1 == sum(line.startswith(said) for line in lines)
    where = plan.locate(29, 1)
    said = shell.run("locate", "a.plan", "--index", "29", "--epoch", "1")
    assert f"step {where.step}, rank {where.rank}" in said
