"""torchdata's StatefulDataLoader in one process: short passes, any workers, stops at any batch."""

import copy
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


def loader_of(
    plan: ip.Plan, kind: Any = StatefulDataLoader, *, partial: bool = False, **options: Any
) -> Any:
    """Rank 1's loader of a plan, in torchdata's class or torch's."""
    sampler = PlanBatchSampler(plan, partial=partial, **ME)
    data = Identity(plan.order.num_samples)
    return kind(data, batch_sampler=sampler, collate_fn=as_they_are, **options)


@pytest.mark.parametrize("num_workers", [0, 1, 2, 3])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 4, 5, 50])
def test_every_stop_resumes_exactly(num_steps: int, num_workers: int) -> None:
    """States of each batch of pass 1, and of its end, go on with what the loop has not received.

    The loop that goes on names the pass that it was stopped in, or none. A pass that was stopped
    at its last batch is empty then, as with torchdata's own samplers. Where torchdata has dropped
    batches up to the end of a pass, naming that pass is refused, with a cure.
    """
    plan = plan_of(num_steps)
    assert num_steps == plan.steps(0, 0).stop
    interval = INTERVALS[(num_steps + num_workers) % 4]
    options = {"num_workers": num_workers, "snapshot_every_n_steps": interval}

    def resumed(state: Any, numbers: list[Any]) -> list[Any]:
        """The passes of a loop that goes on, and sets the epochs that are numbers."""
        loader = loader_of(plan, **options)
        loader.load_state_dict(state)
        passes = []
        for number in numbers:
            if number is not None:
                loader.batch_sampler.set_epoch(number)
            passes.append(list(loader))
        return passes

    loader = loader_of(plan, **options)
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


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("interval", [1, 3])
def test_single_indices_resume_exactly(num_workers: int, interval: int) -> None:
    """A PlanSampler under torchdata's own BatchSampler: each stop of two passes."""
    plan = plan_of(4).replace(remainder="drop")

    def fresh(size: int = 2) -> Any:
        data, sampler = Identity(plan.order.num_samples), PlanSampler(plan, **ME)
        options = {"num_workers": num_workers, "snapshot_every_n_steps": interval}
        return StatefulDataLoader(data, size, sampler=sampler, collate_fn=as_they_are, **options)

    loader, states = fresh(), []
    for number in (0, 1):
        states += [(number, n, copy.deepcopy(loader.state_dict())) for n, _ in enumerate(loader, 1)]
    for number, step, state in states:
        loader = fresh()
        loader.load_state_dict(state)
        rest = of_plan(plan, number, start=step)
        assert [rest, of_plan(plan, number + 1)] == [list(loader), list(loader)]
    with pytest.raises(ip.IndexPlanError, match=r"^batch_size must be 2, that of the plan, "):
        _ = [loader.state_dict() for loader in [fresh(1)] for _ in loader]


def test_a_plan_loader_in_torchdata_nodes_resumes_exactly() -> None:
    """Each state of two passes goes on where the graph was, on other ranks too."""
    plan = plan_of(4)

    def graph(**ranks: int) -> Any:
        data = Identity(plan.order.num_samples)
        loader = PlanLoader(
            data, plan.replace(world_size=None), collate_fn=as_they_are, **(ranks or ME)
        )
        return Loader(IterableWrapper(loader))

    nodes, states = graph(), []
    for number in (0, 1):
        states += [(number, n, copy.deepcopy(nodes.state_dict())) for n, _ in enumerate(nodes, 1)]
    for number, step, state in states:
        cursor = plan.cursor(*divmod(number, 2), step=step)
        for world_size in (2, 3):
            now = plan.replace(world_size=world_size).resume(cursor)
            nodes = graph(rank=1, world_size=world_size)
            nodes.load_state_dict(copy.deepcopy(state))
            start = number + (step == 4)
            passes = [now.batches(*divmod(n, 2), rank=1) for n in (start, start + 1)]
            assert [[b.tolist() for b in each] for each in passes] == [list(nodes), list(nodes)]


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
    """Their state is that of the loader, and counts what the nodes received."""
    sampler = PlanBatchSampler(PLAN, **ME)
    loaders = (
        PlanLoader(Identity(32), PLAN, **ME),
        StatefulDataLoader(Identity(32), batch_sampler=sampler),
    )
    for loader in loaders:
        nodes: Any = Loader(IterableWrapper(loader))
        assert of_plan(PLAN, 0) == [batch.tolist() for batch in nodes]


def test_a_sampler_for_skyrl_resumes() -> None:
    """The page's class, made and loaded as SkyRL does: every state goes on with what is left."""
    page = blocks("docs/reinforcement-learning.md")
    (code,) = (block for block in page if "PlanSampler" in block)
    names: dict[str, Any] = {"ip": ip}
    exec(code, names)  # noqa: S102 (our own page)

    def load() -> Any:
        sampler = names["Samples"](range(103), seed=1)
        return StatefulDataLoader(Identity(103), batch_size=8, sampler=sampler, collate_fn=list)

    loader, whole, states = load(), [], []
    for _ in range(2):
        for batch in loader:
            whole.append([int(each) for each in batch])
            states.append(loader.state_dict())
    plan = ip.Plan(ip.Shuffle(103, seed=1), world_size=1, batch_size=8, remainder="drop")
    assert [batch.tolist() for n in range(2) for batch in plan.batches(n, rank=0)] == whole
    for read, state in enumerate(states, 1):
        again = load()
        again.load_state_dict(state)
        rest = [[int(each) for each in batch] for _ in range(2) for batch in again]
        assert whole[read:] == rest[: len(whole) - read]
