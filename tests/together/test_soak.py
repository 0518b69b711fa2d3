"""`python -m tests.soak` can fail: it finds faults that are planted, each within few legs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import indexplan as ip
from indexplan.files.read import Stored
from indexplan.partition import ranks as shares
from indexplan.partition import steps as partition
from indexplan.plan import plan
from tests.soak.history import PER_CENT, tell

MOST_LEGS = 3000
Patch = pytest.MonkeyPatch


def elastic_resume_loses_a_sample(patch: Patch) -> None:
    """A run that goes on under three ranks starts a unit late."""
    resume = ip.Plan.resume

    def late(self: ip.Plan, cursor: ip.Cursor) -> ip.Plan:
        found = resume(self, cursor)
        left = found.steps(cursor.epoch, cursor.sub_epoch).stop - cursor.step
        if self.world_size != 3 or left < 2 or not cursor.step:
            return found
        return resume(self, replace(cursor, position=cursor.position + 1))

    patch.setattr(ip.Plan, "resume", late)


def text_of_a_cursor_repeats_a_sample(patch: Patch) -> None:
    """A cursor comes back from its text with a position that was read already."""
    read = ip.Cursor.from_json.__func__  # type: ignore[attr-defined]

    def early(cls: type[ip.Cursor], text: str) -> ip.Cursor:
        cursor: ip.Cursor = read(cls, text)
        return replace(cursor, position=cursor.position - 1, step=0) if cursor.step else cursor

    patch.setattr(ip.Cursor, "from_json", classmethod(early))


def rank_reads_its_neighbours_share(patch: Patch) -> None:
    """One rank of many begins a unit early, in single batches."""
    share = shares.share

    def wrong(layout: Any, world_size: int, rank: int, step: int) -> tuple[int, int]:
        start, stop = share(layout, world_size, rank, step)
        return start - (rank == 5 and world_size > 64 and start < stop), stop

    patch.setattr(shares, "share", wrong)


def carry_skips_a_unit(patch: Patch) -> None:
    """A step that runs past the end of an epoch goes on with the second unit of the next."""
    positions = partition.Steps.positions

    def skipping(self: Any, start: int, stop: int) -> list[tuple[int, int, int]]:
        found = positions(self, start, stop)
        if not self.policy.crosses or self.num_units < 9:
            return found
        return [(e, a + (e > self.epoch and a == 0 and b < 9), b) for e, a, b in found]

    patch.setattr(partition.Steps, "positions", skipping)


def account_counts_one_too_few(patch: Patch) -> None:
    """What is dropped is not what the account says."""
    account = plan.account

    def less(*arguments: Any) -> Any:
        found = account(*arguments)
        return replace(found, num_dropped=max(0, found.num_dropped - 1))

    patch.setattr(plan, "account", less)


def stored_order_repeats_a_sample(patch: Patch) -> None:
    """What is read of a file has its first entry twice."""
    _twice(patch, Stored)


def huge_order_repeats_a_sample(patch: Patch) -> None:
    """An order is not one-to-one where 32 bits are not enough."""
    _twice(patch, ip.Shuffle)


def _twice(patch: Patch, order: type[ip.Order]) -> None:
    fill = order.fill

    def twice(self: Any, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        fill(self, epoch, starts, stops, out)
        if order is Stored or self.num_samples > 2**32:
            out[-1:] = out[:1]

    patch.setattr(order, "fill", twice)


FAULTS: dict[Callable[[Patch], None], str] = {
    elastic_resume_loses_a_sample: "",
    text_of_a_cursor_repeats_a_sample: "",
    rank_reads_its_neighbours_share: "",
    carry_skips_a_unit: "",
    account_counts_one_too_few: "",
    stored_order_repeats_a_sample: "plan directories",
    huge_order_repeats_a_sample: "huge orders",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(
    fault: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault makes some history wrong, in words, before so many legs are over."""
    fault(monkeypatch)
    kinds = frozenset(kind for kind in PER_CENT if kind == FAULTS[fault])
    legs = seed = 0
    while not (story := tell(seed, kinds)).wrong:
        legs += story.counts["", "legs"]
        seed += 1
        assert legs < MOST_LEGS
    assert not any("Traceback" in words for words in story.wrong), story.wrong
    assert any("again" in words or "dropped" in words for words in story.wrong), story.wrong


@pytest.mark.parametrize("kind", PER_CENT)
def test_a_seed_tells_one_history(kind: str) -> None:
    """A history of any kind is told by its seed, and nothing is wrong in it."""
    first, again = (tell(7, frozenset({kind})) for _ in range(2))
    assert [] == first.wrong
    assert (first.words, first.counts) == (again.words, again.counts)
