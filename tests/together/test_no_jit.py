"""With NUMBA_DISABLE_JIT=1 everything works, slowly: for whoever steps through a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.fresh import printed

SCRIPT = """
import json
import numpy as np
import indexplan as ip
from indexplan.cli import main
from indexplan.kernels import thresholds
from tests.support.bins import Bins
from tests.support.every_order import every_order

answers = {}
orders = every_order()
for name, order in orders.items():
    plan = ip.Plan(order, world_size=3, batch_size=2)
    mine = answers[name] = [plan.batch(epoch, step=0, rank=1).tolist() for epoch in (0, 2)]
    mine += [each.tolist() for each in order.locate_all(1, range(0, order.num_samples, 7))]
    mine += [order.locate(1, range(5)).tolist(), order.count(1, range(5)).tolist()]
    mine += [order.offsets(0, 0, 3).tolist(), ip.verify(plan).ok]
    mine += [order.spans(0, 0, 3).tolist() if order.traits.cuts_samples else None]
    mine += [order.group_shares(0, 0, 3).tolist() if order.group_names else None]

for order in (orders["shuffle-v1"], orders["weighted-v1"], Bins(50)):
    path = f"{type(order).__name__}.plan"
    ip.save(ip.Plan(order, world_size=3, batch_size=7), path, epochs=[0, 1])
    stored = ip.load(path)
    answers[path] = [stored.batch(1, step=0, rank=1).tolist(), ip.verify(stored).ok]
    answers[path] += [main(["verify", path]), main(["show", path])]

lengths = np.arange(48) % 11 + 1
plan = ip.Plan(orders["shuffle-v1"], world_size=2, batch_size=4, balance=ip.Balance(lengths))
answers["balance"] = plan.batch(0, step=1, rank=1).tolist()
plan = ip.Plan(orders["shard-shuffle-v1"], world_size=2, batch_size=4)
answers["traffic"] = ip.traffic(plan, ranks_per_node=1).to_dict()
answers["draws"] = str(ip.draws(ip.Plan(orders["mixture-v1"], world_size=1, batch_size=4), 0))
kinds = [type(each).__name__ for each in thresholds.add_up(np.ones(3), 1.0, 1.0, 2**62)]
answers["kinds of numbers"] = kinds  # what callers compute with them does not wrap around at 2**63
print(json.dumps([answers, main(["bench", "--warm-up"])]))
"""


def answers(folder: Path, **environ: str) -> Any:
    """Return the answers of a process of its own."""
    folder.mkdir()
    said = printed("-W", "error", "-c", SCRIPT, cwd=folder, loud=True, **environ)
    return json.loads(said.splitlines()[-1])


def test_plain_functions_give_the_same_answers(tmp_path: Path) -> None:
    """Orders, builds, checks and commands answer as with kernels; warm-up alone has to complain."""
    with_kernels, warm = answers(tmp_path / "compiled")
    without, cold = answers(tmp_path / "plain", NUMBA_DISABLE_JIT="1")
    assert with_kernels.keys() == without.keys()
    for name, expected in with_kernels.items():
        assert (name, expected) == (name, without[name])
    assert ["int", "int"] == without["kinds of numbers"]
    assert (0, 1) == (warm, cold)
