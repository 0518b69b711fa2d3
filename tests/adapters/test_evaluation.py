"""An evaluation reads each sample once, for any number of samples and ranks and any batch size."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler
from tests.adapters.small import Identity, loaders_of

PLAN = ip.Plan(ip.Shuffle(9, seed=2), batch_size=1)


loaders = partial(loaders_of, evaluation=True)


class Whole(Identity):
    """A dataset that is asked for arrays."""

    def __getitems__(self, asked: Any) -> Any:
        return list(asked)


FORMS: dict[str, dict[str, Any]] = {
    "lists": {},
    "arrays": {"as_array": True},
    "inner batches": {"nested": True},
    "items": {"item": lambda index, _: index},
}


@given(
    st.integers(1, 40),
    st.integers(1, 8),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([*FORMS]),
)
def test_each_sample_is_read_once(
    n: int, world_size: int, size: int, sub_epochs: int, form: str
) -> None:
    """All ranks together read an epoch, each what the plan deals to it, and `len` counts that."""
    sizes = (size, 1) if form == "inner batches" else size
    plan = ip.Plan(ip.Shuffle(n, seed=n), batch_size=sizes, sub_epochs=sub_epochs)
    whole, options = plan.replace(world_size=world_size), {**FORMS[form], "dataset": Whole(n)}
    ranks = loaders(plan, world_size, **options)
    for epoch in range(2):
        seen: list[int] = []
        for sub_epoch in range(sub_epochs):
            for rank, loader in enumerate(ranks):
                dealt = [
                    (step, batch)
                    for step in whole.steps(epoch, sub_epoch)
                    if (batch := whole.batch(epoch, sub_epoch, step=step, rank=rank).tolist())
                ]
                loader.set_epoch(epoch * sub_epochs + sub_epoch)
                before = loader.state_dict()
                length, read = len(loader), []
                for (step, _), batch in zip(dealt, loader, strict=True):
                    read.append(flat(batch))
                    where = {"epoch": epoch, "sub_epoch": sub_epoch, "step": step}
                    assert whole.step_size(**where) == loader.step_size == loader.step_total()
                assert [batch for _, batch in dealt] == read
                assert length == len(read)
                seen += sum(read, [])
                again = loaders(plan, world_size, **options)[rank]
                again.load_state_dict(before)
                assert read == [flat(batch) for batch in again]
            assert 1 == len({str(loader.state_dict()) for loader in ranks})
        assert [*range(n)] == sorted(seen)


@pytest.mark.slow
def test_workers_read_no_steps_without_samples() -> None:
    """Ranks that read fewer have a batch less."""
    ranks = [list(loader) for loader in loaders(PLAN, 4, num_workers=2)]
    assert [2, 2, 2, 3] == sorted(map(len, ranks))
    assert [*range(9)] == sorted(index for rank in ranks for batch in rank for index in batch)


def flat(batch: Any) -> list[int]:
    """Return the samples of nested lists."""
    return [i for part in batch for i in flat(part)] if isinstance(batch, list) else [int(batch)]


def test_a_run_resumes_before_an_evaluation_and_not_inside() -> None:
    """Inside, ranks stand at different steps, so no state is right for all of them."""
    loader = loaders(PLAN, 4)[0]
    assert 2 == len(list(islice(loader, 2)))
    with pytest.raises(ip.IndexPlanError, match="between two passes"):
        loader.state_dict()
    with pytest.raises(ip.IndexPlanError, match="between two passes"):
        _ = loader.cursor
    rest = PLAN.resume(PLAN.replace(world_size=4).cursor(0, step=2))
    read = [batch for each in loaders(rest, 4) for batch in each]
    wanted = [PLAN.replace(world_size=4).batch(0, step=2, rank=rank).tolist() for rank in range(4)]
    assert [batch for batch in wanted if batch] == read


def test_a_sampler_is_not_drawn_by_another_loader() -> None:
    """Its batches are left out where a PlanLoader reads alone, and refused where others do."""
    loader = loaders(PLAN, 4)[0]
    drawn: Any = DataLoader(Identity(9), batch_sampler=loader.batch_sampler)  # type: ignore[arg-type]
    with pytest.raises(ip.IndexPlanError, match="hand its batches to the loop itself"):
        list(drawn)
    with pytest.raises(ip.IndexPlanError, match="evaluation=True"):
        list(PlanBatchSampler(PLAN, rank=0, world_size=4))
    with pytest.raises(ip.IndexPlanError, match="remainder must be 'spread'"):
        loader.move(PLAN.replace(remainder="pad"))
