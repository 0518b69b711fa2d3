"""torchdata's StatefulDataLoader in one process: short passes, any workers, stops at any batch.

verl's and SkyRL's trainers, which need GPUs, put the page's sampler of prompts into one. What they
do with it is copied from verl 0.9.1 (`RayPPOTrainer._create_dataloader`, `_save_checkpoint`,
`_load_checkpoint` and `fit`, which ran with this class beside these tests) and from SkyRL 0.3.0:
they save the loader's state after any step, and never name an epoch.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
from torch.utils.data import BatchSampler, DataLoader
from torchdata.nodes import IterableWrapper, Loader, SamplerWrapper
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from tests.adapters.small import ME, Identity, as_they_are, of_plan
from tests.test_docs import blocks

pytestmark = [
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),  # torchdata calls it
    pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes"),
]

INTERVALS = (1, 2, 3, 100)  # of torchdata's snapshots; passes meet them in turn


def plan_of(num_steps: int) -> ip.Plan:
    """A plan of two ranks, with passes of so many steps."""
    return ip.Plan(ip.Shuffle(8 * num_steps, seed=3), world_size=2, batch_size=2, sub_epochs=2)


def loader_of(plan: ip.Plan, sampler: Any, **options: Any) -> Any:
    """A loader of torchdata's class around a sampler of batches, or of samples."""
    form = {"batch_sampler": sampler}
    if isinstance(sampler, PlanSampler):
        form = {"sampler": sampler, "batch_size": 2}
    data = Identity(plan.order.num_samples)
    return StatefulDataLoader(data, collate_fn=as_they_are, **form, **options)


CASES: list[Any] = [
    (PlanBatchSampler, num_steps, num_workers)
    for num_steps in (1, 2, 3, 4, 5, 50)
    for num_workers in (0, 1, 2, 3)
]
CASES += [(PlanSampler, *each) for each in ((3, 2), (4, 0), (4, 2), (5, 0))]


@pytest.mark.parametrize(("kind", "num_steps", "num_workers"), CASES)
def test_every_stop_resumes_exactly(kind: Any, num_steps: int, num_workers: int) -> None:
    """States of each batch of pass 1, and of its end, go on with what the loop has not received.

    The loop that goes on names the pass that it was stopped in, or none. A pass that was stopped
    at its last batch is empty then, as with torchdata's own samplers. Where torchdata has dropped
    batches up to the end of a pass, naming that pass is refused, with a cure.
    """
    plan = plan_of(num_steps).replace(remainder="drop")
    assert num_steps == plan.steps(0, 0).stop
    interval = INTERVALS[(num_steps + num_workers) % 4]
    options = {"num_workers": num_workers, "snapshot_every_n_steps": interval}

    def resumed(state: Any, numbers: list[Any]) -> list[Any]:
        """The passes of a loop that goes on, and sets the epochs that are numbers."""
        sampler = kind(plan, **ME)
        loader = loader_of(plan, sampler, **options)
        loader.load_state_dict(state)
        passes = []
        for number in numbers:
            if number is not None:
                sampler.set_epoch(number)
            passes.append(list(loader))
        return passes

    loader = loader_of(plan, kind(plan, **ME), **options)
    assert of_plan(plan, 0) == list(loader)
    states = [loader.state_dict() for _ in loader]
    end = loader.state_dict()
    second, third = of_plan(plan, 2), of_plan(plan, 3)
    for step in range(num_steps - 1) if num_steps < 10 else (0, num_steps - 2):
        rest = of_plan(plan, 1, start=step + 1)
        told = [1, 2] if step % 2 else [None, None]
        assert [rest, second] == resumed(states[step], told)
    dropped = num_workers and num_steps % interval
    for state, unset in ((states[-1], [[], second]), (end, [second, third])):
        if state is end and dropped:
            with pytest.raises(ip.IndexPlanError, match=r"leave it out before the first$"):
                resumed(state, [1])
        else:
            assert [[], second, third] == resumed(state, [1, 2, None])
        assert unset == resumed(state, [None, None])
        with pytest.raises(ip.IndexPlanError, match=r"^set_epoch must name pass 1, .*; got 2; "):
            resumed(state, [2])


PLAN = plan_of(4).replace(remainder="drop")
SOURCES: dict[str, Any] = {
    "batch sampler": lambda: PlanBatchSampler(PLAN, **ME),
    "sampler": lambda: PlanSampler(PLAN, **ME),
    "its view": lambda: PlanLoader(Identity(32), PLAN, **ME).sampler,
    "torch's batches": lambda: BatchSampler(PlanSampler(PLAN, **ME), 2, drop_last=True),
    "loader": lambda: DataLoader(Identity(32), batch_sampler=PlanBatchSampler(PLAN, **ME)),
    "workers": lambda: DataLoader(
        Identity(32), sampler=PlanSampler(PLAN, **ME), batch_size=2, num_workers=1
    ),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torch's workers
@pytest.mark.parametrize("wrapper", [SamplerWrapper, IterableWrapper])
@pytest.mark.parametrize("source", SOURCES)
def test_nodes_that_count_draws_are_refused(source: str, wrapper: Any) -> None:
    """Also where batches are drawn late, or by a loader that has no state."""
    said = f"^a plan's sampler must be outside {wrapper.__name__}, which resumes by its number of "
    with pytest.raises(ip.IndexPlanError, match=said):
        next(iter(Loader(wrapper(SOURCES[source]()))))


def test_nodes_read_loaders_that_have_a_state() -> None:
    """Their state is that of the loader, by which `tests.histories trainers` resumes them."""
    loaders: tuple[Any, ...] = (
        PlanLoader(Identity(32), PLAN, **ME),
        StatefulDataLoader(Identity(32), batch_sampler=PlanBatchSampler(PLAN, **ME)),
    )
    for loader in loaders:
        nodes: Any = Loader(IterableWrapper(loader))
        assert of_plan(PLAN, 0) == [batch.tolist() for batch in nodes]


# --- the page's sampler of prompts

PROMPTS, BATCH, EPOCHS = 67, 8, 3
STEPS = PROMPTS // BATCH


def page_class() -> Any:
    """Return the page's class."""
    (block,) = (each for each in blocks("docs/reinforcement-learning.md") if "Samples(" in each)
    names: dict[str, Any] = {"ip": ip}
    exec(block, names)  # noqa: S102 (our own page)
    return names["Samples"]


def train_loader_of(workers: int) -> Any:
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


def fit(
    workers: int, step: int = 0, state: Any = None, stop: int = EPOCHS * STEPS, by: str = "verl"
) -> Any:
    """Train from a step to another; return what each epoch read, and a state.

    At an epoch's end verl leaves its state out, and SkyRL loads it: a pass of nothing follows.
    """
    loader = train_loader_of(workers)
    assert STEPS == len(loader)
    first = step // STEPS
    if state is not None and (step % STEPS or by == "SkyRL"):
        loader.load_state_dict(copy.deepcopy(state))
        first -= not step % STEPS
    read: dict[int, list[int]] = {}
    for epoch in range(first, EPOCHS):
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


@pytest.mark.parametrize("by", ["verl", "SkyRL"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stop_anywhere(workers: int, by: str) -> None:
    """The run goes on as if it had not stopped: no prompt twice in an epoch, none left out.

    Where verl leaves its state out, the first epoch's order comes again; none is lost.
    """
    whole, _ = fit(workers)
    order = ip.Shuffle(PROMPTS, seed=0)
    plan = ip.Plan(order, world_size=1, batch_size=BATCH, remainder="drop")
    assert whole == {epoch: plan.indices(epoch, rank=0).tolist() for epoch in range(EPOCHS)}
    for stop in range(1, EPOCHS * STEPS) if not workers else (1, STEPS, 2 * STEPS + 5):
        read, state = fit(workers, stop=stop)
        rest, _ = fit(workers, stop, state, by=by)
        left = [epoch for epoch in range(EPOCHS) if epoch * STEPS >= stop]
        if by == "verl" and not stop % STEPS:
            assert [whole[epoch] for epoch in range(len(left))] == [rest[epoch] for epoch in left]
        else:
            both = {epoch: read.get(epoch, []) + rest.get(epoch, []) for epoch in range(EPOCHS)}
            assert whole == both
