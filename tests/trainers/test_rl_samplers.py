"""The page's sampler of prompts, in the loader of verl's and SkyRL's trainers, stopped anywhere.

Those trainers need GPUs. What they do with a sampler is copied from verl 0.9.1
(`RayPPOTrainer._create_dataloader`, `_save_checkpoint`, `_load_checkpoint` and `fit`, which ran
with this class beside these tests) and from SkyRL 0.3.0: they put it into a `StatefulDataLoader`,
save the loader's state after any step, and never name an epoch.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from tests.test_docs import blocks

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PROMPTS, BATCH, EPOCHS = 67, 8, 3
STEPS = PROMPTS // BATCH


def page_class() -> Any:
    """Return the page's class."""
    (block,) = (each for each in blocks("docs/reinforcement-learning.md") if "Samples(" in each)
    names: dict[str, Any] = {"ip": ip}
    exec(block, names)  # noqa: S102 (our own page)
    return names["Samples"]


def loader_of(workers: int) -> Any:
    """The loader that verl makes around `train_sampler`."""
    sampler = page_class()(range(PROMPTS), batch_size=BATCH)
    return StatefulDataLoader(
        dataset=range(PROMPTS),
        batch_size=BATCH,
        num_workers=workers,
        drop_last=True,
        collate_fn=list,
        sampler=sampler,
    )


def fit(workers: int, step: int = 0, state: Any = None, stop: int = EPOCHS * STEPS) -> Any:
    """Train as verl does from a step to another; return what each epoch read, and a state."""
    loader = loader_of(workers)
    assert STEPS == len(loader)
    if state is not None and step % STEPS:  # verl does not load a state of an epoch's end
        loader.load_state_dict(copy.deepcopy(state))
    read: dict[int, list[int]] = {}
    for epoch in range(step // STEPS, EPOCHS):
        for batch in loader:
            read.setdefault(epoch, []).extend(batch)
            step += 1
            if step == stop:
                return read, loader.state_dict()
    return read, loader.state_dict()


def test_the_constructor_of_skyrl() -> None:
    """`sampler_class_path` is called with the data, its batch size, and `sampler_kwargs`."""
    names = list(inspect.signature(page_class()).parameters)
    assert ["data_source", "seed", "batch_size"] == names
    order = ip.Shuffle(PROMPTS, seed=5)
    plan = ip.Plan(order, world_size=1, batch_size=BATCH, remainder="drop")
    sampler = page_class()(data_source=range(PROMPTS), batch_size=BATCH, seed=5)
    assert STEPS * BATCH == len(sampler)
    assert [each for batch in plan.batches(0, rank=0) for each in batch.tolist()] == list(sampler)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, STEPS - 1, STEPS + 3, 2 * STEPS + 5])
def test_a_stop_inside_an_epoch(stop: int, workers: int) -> None:
    """The run goes on as if it had not stopped: no prompt twice in an epoch, none left out."""
    whole, _ = fit(workers)
    assert all(len(set(read)) == STEPS * BATCH == len(read) for read in whole.values())
    assert EPOCHS == len({tuple(read) for read in whole.values()})
    read, state = fit(workers, stop=stop)
    rest, _ = fit(workers, stop, state)
    both = {epoch: read.get(epoch, []) + rest.get(epoch, []) for epoch in range(EPOCHS)}
    assert whole == both


def test_a_stop_at_the_end_of_an_epoch() -> None:
    """Verl leaves its state out there, so the first epoch's order comes again; none is lost."""
    whole, _ = fit(0)
    _, state = fit(0, stop=STEPS)
    rest, _ = fit(0, STEPS, state)
    assert [whole[0], whole[1]] == [rest[1], rest[2]]
