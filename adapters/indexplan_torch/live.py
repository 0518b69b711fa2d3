"""Plans under torchft, whose groups of ranks come and go: a loader for its training loops."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import integer, wrong
from indexplan_torch.endless import endless
from indexplan_torch.items import Item
from indexplan_torch.loader import Options, PlanLoader, check_options
from indexplan_torch.quorum import Live, World

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["Live", "LiveLoader", "LiveOptions"]


class LiveOptions(Options, total=False):
    """What a `LiveLoader` passes on: the form of batches, and DataLoader's options."""

    nested: bool
    item: Item | None
    as_array: bool
    keep_bins: bool


ALLOWED = frozenset(LiveOptions.__optional_keys__)


class Received(NamedTuple):
    """What a loop is told of its last batch."""

    world_size: int
    step_size: int
    num_valid: int


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that a loader of a world that changes cannot have."""
    a_loader_s = ALLOWED | signature(PlanLoader).parameters.keys()  # refused as such below
    check_options(LiveLoader, {name: options[name] for name in options if name not in a_loader_s})
    for name in options.keys() - ALLOWED:
        rule = "left out of a LiveLoader, whose ranks are the manager's and whose steps the plan's"
        raise wrong(name, rule, options[name], f"use only {', '.join(sorted(ALLOWED))}")


class LiveLoader:
    """A loader for torchft's training loop that loses no sample when groups come and go.

    Each batch is one step: the loader starts its quorum, waits for it, and yields what this rank
    reads in it. So when `zero_grad` of torchft's optimizer calls `start_quorum`, it is started
    already. From `should_commit`, which `step` calls, the loader learns whether the step counts; if
    not, the same samples come again. You may leave a loop with `break`, before or after the step of
    its last batch; the next loop continues from there. Workers fetch ahead for the groups of the
    last step, and what they have fetched is thrown away when the groups change, and when a step
    fails.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style, with as many samples as the plan's order.
    plan, manager, inner_rank, inner_size, max_world, ledger
        As for `Live`.
    num_epochs : int, optional
        Stop before this epoch of the run, counted over all groups and restarts. By default the
        loader never ends, and the loop looks at `manager.current_step()`.
    **options
        The form of batches, as for `PlanLoader`: nested, item, as_array and keep_bins; and options
        of DataLoader: num_workers, collate_fn and so on.

    Raises
    ------
    IndexPlanError
        As `Live` and `PlanLoader` do; if num_epochs is below 1, or an option is none of these.
    """

    def __init__(
        self,
        dataset: Any,
        plan: Plan,
        manager: Any,
        *,
        num_epochs: int | None = None,
        inner_rank: int = 0,
        inner_size: int = 1,
        max_world: int | None = None,
        ledger: str | os.PathLike[str] | Literal[False] | None = None,
        **options: Unpack[LiveOptions],
    ) -> None:
        _check_options(options)
        if num_epochs is not None:
            cure = "count from the start of the run, or leave it out to read without end"
            num_epochs = integer("num_epochs", num_epochs, 1, 2**32 + 1, cure)
        self.num_epochs = num_epochs
        self._dataset, self._options = dataset, options
        self._live = Live(
            plan,
            manager,
            inner_rank=inner_rank,
            inner_size=inner_size,
            max_world=max_world,
            ledger=ledger,
        )
        self._plan = plan
        self._loader(World(1, 0))  # refuses at once what it would refuse in the first step
        self._start, self._should_commit = manager.start_quorum, manager.should_commit
        self._running: object | None = None  # the iteration that runs, if one does
        self._open = False  # whether a step's quorum is known, and not yet whether it counts
        self._received: Received | None = None
        self._batches: Iterator[Any] | None = None
        self._for: tuple[World, int] | None = None  # what workers fetch ahead for
        manager.start_quorum, manager.should_commit = self._quorum_started, self._deciding

    def __repr__(self) -> str:
        return repr(self._live).replace("Live", "LiveLoader", 1)

    def state_dict(self) -> dict[str, Any]:
        """As `Live.state_dict`."""
        return self._live.state_dict()

    def load_state_dict(self, state: dict[str, Any], *, other_plan: bool = False) -> None:
        """As `Live.load_state_dict`."""
        self._live.load_state_dict(state, other_plan=other_plan)
        self._open = False  # a batch that was read before belongs to no step of this run
        self._drop()

    def _loader(self, world: World) -> PlanLoader:
        plan = self._plan.replace(world_size=None).resume(self.cursor)
        size, rank = world
        return PlanLoader(
            self._dataset, plan, rank=rank, world_size=size, compare=False, **self._options
        )

    def _quorum_started(self, *arguments: Any, **options: Any) -> None:
        """Start a quorum, unless the loader has: what the manager's `start_quorum` is now."""
        if self._running is None and not self._open:
            self._start(*arguments, **options)

    def _deciding(self, *arguments: Any, **options: Any) -> bool:
        """Hear whether the step counts: what the manager's `should_commit` is now."""
        committed: bool = self._should_commit(*arguments, **options)
        if self._open:
            self._open = False
            if not committed:
                self._drop()  # the same samples come next, and not those that workers fetch
            self._live.commit(committed)
        return committed

    def _drop(self) -> None:
        """Throw away what workers have fetched ahead."""
        self._batches = self._for = None

    def __iter__(self) -> Iterator[Any]:
        """Yield a batch for each step, whether it will count or not, until the last epoch is read.

        Raises
        ------
        IndexPlanError
            If the loop asks for the next batch without `should_commit`, or as `Live.settled` does.
        """
        live, mine = self._live, object()
        self._running = mine
        self._drop()
        try:
            while self.num_epochs is None or live.epoch < self.num_epochs:
                if not self._open:  # else a loop was left at this step
                    self._start()
                live.begin()
                live.settled()
                self._open = True
                world, standing = live.world(), live.standing
                of_this_rank = standing.num_valid(*world)
                if self._batches is None or self._for != (world, live.num_loads):
                    self._batches = endless(self._loader(world))
                    self._for = world, live.num_loads
                batch = next(self._batches)
                self._received = Received(world.world_size, standing.step_size, of_this_rank)
                yield batch
                if self._open:
                    raise IndexPlanError(
                        "a batch of a LiveLoader",
                        "must be followed by manager.should_commit(), or optimizer.step()",
                        "none before the next batch",
                        "wrap the optimizer in torchft.Optimizer, and step after each batch",
                    )
        finally:
            if self._running is mine:  # else a later loop reads
                self._running = None
                self._drop()

    @property
    def world_size(self) -> int:
        """How many ranks read the step of the batch that was received last."""
        return self._last("world_size").world_size

    @property
    def step_size(self) -> int:
        """How many units all ranks together read in the step received last, without padding.

        Use it to weight losses: if each rank's loss is `world_size / step_size` times the sum over
        its units, then torchft's mean over ranks is the mean over the step's units, also where the
        groups have unequal shares.

        Raises
        ------
        IndexPlanError
            Before the loop has received a batch.
        """
        return self._last("step_size").step_size

    @property
    def num_valid(self) -> int:
        """How many units of the batch received last are not padding, which comes last in it."""
        return self._last("num_valid").num_valid

    def _last(self, name: str) -> Received:
        if self._received is None:
            rule, got = "must be asked for inside the loop, after a batch", "none before it"
            raise IndexPlanError(name, rule, got, "use a Live's standing for loops of your own")
        return self._received

    @property
    def epoch(self) -> int:
        """The epoch of the step that comes next."""
        return self._live.epoch

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, for a checkpoint; continue with `plan.resume(cursor)`."""
        return self._live.cursor
