"""Which epochs, steps and ranks a plan has: every number that a question names is checked here."""

from __future__ import annotations

from dataclasses import dataclass

from indexplan.errors import IndexPlanError, whole, wrong
from indexplan.partition import Layout, layout
from indexplan.seeds import check_epoch
from indexplan.spec import Spec


@dataclass(frozen=True)
class Bounds(Spec):
    """A spec that knows the ranges of its own numbers."""

    def _world(self) -> int:
        if self.world_size is None:
            cure = "use plan.replace(world_size=...), the number of running ranks"
            raise IndexPlanError(
                f"world_size must be set for this; the plan leaves it open; {cure}"
            )
        return self.world_size

    def _sized(self) -> None:
        if not self._partition.sizes:
            self._world()

    def _rank(self, rank: int) -> int:
        world = self._world()
        return whole("rank", rank, 0, world, f"the plan's world_size is {world}")

    def _layout(self, epoch: int, sub_epoch: int | None) -> Layout:
        epoch = check_epoch(epoch)
        if sub_epoch is None and self.sub_epochs != 1:
            rule = f"given, from 0 to {self.sub_epochs - 1}, as the plan has sub_epochs"
            raise wrong("sub_epoch", rule, None)
        sub_epoch = whole("sub_epoch", 0 if sub_epoch is None else sub_epoch, 0, self.sub_epochs)
        if self.resumed is not None and (epoch, sub_epoch) < self.resumed[:2]:
            start = f"({self.resumed.epoch}, {self.resumed.sub_epoch}), where the plan was resumed"
            raise wrong("(epoch, sub_epoch)", f"at least {start}", (epoch, sub_epoch))
        self._sized()
        return layout(self._partition, self.order.num_units(epoch), epoch, sub_epoch)

    def _step(self, steps: Layout, step: int) -> int:
        rule = f"the unfinished steps of {self._what(steps)}"
        if steps.first_step == steps.num_steps:
            raise wrong("step", f"one of {rule}, of which there are none", step)
        return whole("step", step, steps.first_step, steps.num_steps, rule)

    def _steps(
        self,
        epoch: int,
        sub_epoch: int | None,
        rank: int,
        start_step: int | None,
        stop_step: int | None,
    ) -> tuple[int, Layout, int, int]:
        rank = self._rank(rank)
        steps = self._layout(epoch, sub_epoch)
        low, high = steps.first_step, steps.num_steps + 1
        rule = f"within the steps of {self._what(steps)}"
        start = low if start_step is None else whole("start_step", start_step, low, high, rule)
        stop = high - 1 if stop_step is None else whole("stop_step", stop_step, start, high, rule)
        return rank, steps, start, stop

    def _what(self, steps: Layout) -> str:
        whole_epoch = f"epoch {steps.epoch}"
        return (
            whole_epoch if self.sub_epochs == 1 else f"{whole_epoch}, sub-epoch {steps.sub_epoch}"
        )
