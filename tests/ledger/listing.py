"""What a ledger answers, held against a list of the batches of all ranks, step by step.

The list is that of a drawn run, or what the ledger's own lines say, read from their plans alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import indexplan as ip


class Step(NamedTuple):
    """A step: of which plan and place, what each rank read, how many units, and how many again."""

    named: tuple[str, int, int, int]
    batches: list[list[int]]
    num_units: int
    num_padded: int

    @property
    def epoch(self) -> int:
        """Its epoch."""
        return self.named[1]


def listed(path: Path) -> tuple[list[Step], list[Step]]:
    """Return the steps that count, and those that are void, of a ledger that `verify` accepts."""
    plans: dict[int, ip.Plan] = {}
    live: list[Step] = []
    void: list[Step] = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        line = json.loads(text)
        if line["kind"] == "plan":
            plans[number] = ip.Plan.from_json(
                json.dumps(line["plan"]), columns=path.parent / "columns"
            )
        elif line["kind"] == "run":
            plan = plans[line["plan"]]
            names = ("epoch", "sub_epoch", "step", "position")
            place = dict(zip(names, line["from"], strict=True))
            own: dict[str, Any] = {"order": plan.order.to_dict(), "sub_epochs": plan.sub_epochs}
            read = steps_of(plan.resume(ip.Cursor(**place, **own)))
            live += [next(read) for _ in range(line["steps"])]
        else:
            void += live[line["step"] :]
            del live[line["step"] :]
    return live, void


def steps_of(plan: ip.Plan) -> Iterator[Step]:
    """Yield the steps of a plan from where it was resumed on."""
    fingerprint = plan.replace(world_size=plan.world_size).fingerprint
    epoch, part, ranks = plan.start.epoch, plan.start.sub_epoch, range(plan.world_size or 0)
    while True:
        for step in plan.steps(epoch, part):
            units = [plan.units(epoch, part, step=step, rank=rank) for rank in ranks]
            valid = sum(each.num_valid for each in units)
            padded = sum(len(each) for each in units) - valid
            named = fingerprint, epoch, part, step
            yield Step(named, [each.samples.tolist() for each in units], valid, padded)
        epoch, part = (epoch, part + 1) if part + 1 < plan.sub_epochs else (epoch + 1, 0)


def check(ledger: ip.Ledger, of: tuple[list[Step], list[Step]] | None = None) -> None:
    """Hold all that a ledger can be asked against the steps that count, and those that are void."""
    live, void = of or listed(ledger.path)
    assert len(live) == ledger.step
    for number, step in enumerate(live):
        at, again = ledger.at(number), ledger.replay(number)
        ranks = range(len(step.batches))
        assert step.batches == [ledger.batch(number, rank).tolist() for rank in ranks]
        where = {"epoch": at.epoch, "sub_epoch": at.sub_epoch, "step": at.step}
        assert step.batches == [at.plan.batch(**where, rank=rank).tolist() for rank in ranks]
        assert at.plan.resume(at.cursor).steps(at.epoch, at.sub_epoch).start == at.step
        together = [sample for batch in step.batches for sample in batch]
        alone = again.batch(**where, rank=0).tolist()
        assert together == alone if at.plan.balance is None else Counter(together) == Counter(alone)
    if not ledger.tail.num_lines:
        return
    _check_samples(ledger, live, void)
    account = ledger.account()
    plans = [each.plan for each in ledger.history.plans.values()]
    assert sum(step.num_units for step in live) == account.num_read
    assert sum(step.num_padded for step in live) == account.num_padded
    assert sum(step.num_units for step in void) == account.num_void
    assert (len(live), len(void)) == (account.num_steps, account.num_void_steps)
    texts = map(json.loads, ledger.path.read_text().splitlines())
    begun = min((line["from"] for line in texts if line["kind"] == "run"), default=[0] * 4)
    for epoch in {step.epoch for step in live}:
        of_epoch = ledger.account(epoch)
        assert sum(step.epoch == epoch for step in live) == of_epoch.num_steps
        assert sum(step.epoch == epoch for step in void) == of_epoch.num_void_steps
        assert (begun[3] if epoch == begun[0] else 0) == of_epoch.num_finished
        parts = of_epoch.num_read + of_epoch.num_dropped + of_epoch.num_left + of_epoch.num_finished
        assert of_epoch.num_units == parts + of_epoch.num_skipped + of_epoch.num_excluded
        if all(plan.remainder != "carry" for plan in plans):  # else steps may cross epochs
            mine = [step for step in live if step.epoch == epoch]
            assert sum(step.num_units for step in mine) == of_epoch.num_read
            assert sum(step.num_padded for step in mine) == of_epoch.num_padded


def _check_samples(ledger: ip.Ledger, live: list[Step], void: list[Step]) -> None:
    """Each read of each sample is found, by step and rank, and counted before any step."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, step in enumerate(live):
        for rank, batch in enumerate(step.batches):
            for sample in batch:
                found.setdefault(sample, []).append((number, rank))
    undone = Counter(sample for step in void for batch in step.batches for sample in batch)
    num = num_samples(ledger, live + void)
    for sample in range(num):
        reads = ledger.reads(sample, void=True)
        assert [read for read in reads if not read.void] == ledger.reads(sample)
        assert sorted(found.get(sample, [])) == [each[:2] for each in reads if not each.void]
        assert undone[sample] == sum(each.void for each in reads)
    for until in (0, len(live) // 2, len(live)):
        counts = ledger.seen(np.arange(num), until).tolist()
        assert [sum(step < until for step, _ in found.get(s, [])) for s in range(num)] == counts


def num_samples(ledger: ip.Ledger, steps: list[Step]) -> int:
    """Return how many samples may be asked: also those that joined before a return."""
    read = (max(batch) for step in steps for batch in step.batches if batch)
    return max(ledger.plan.order.num_samples, 1 + max(read, default=0))
