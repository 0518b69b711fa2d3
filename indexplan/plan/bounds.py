"""Which epochs, steps and ranks a plan has: every number that a question names is checked here."""

from __future__ import annotations

from dataclasses import dataclass

from indexplan.errors import whole, wrong
from indexplan.partition.steps import Layout, layout
from indexplan.plan.spec import Spec
from indexplan.seeds import check_epoch


@dataclass(frozen=True)
class Bounds(Spec):
    """A spec that knows the ranges of its own numbers."""

    def _world(self) -> int:
        if self.world_size is None:
            cure = "use plan.replace(world_size=...) or --world-size, the number of running ranks"
            raise wrong("world_size", "set for this", None, cure)
        return self.world_size

    def _sized(self) -> None:
        if not self._partition.sizes:
            self._world()

    def _rank(self, rank: int) -> int:
        cure = "plan.replace(world_size=...) changes how many ranks there are"
        return whole("rank", rank, 0, self._world(), cure)

    def _layout(self, epoch: int, sub_epoch: int | None) -> Layout:
        epoch = check_epoch(epoch)
        if self.sub_epochs == 1:
            sub_epoch = 0 if sub_epoch is None else sub_epoch
            cure = "leave it out, as the plan has one sub-epoch an epoch"
        else:
            cure = f"name one of the plan's {self.sub_epochs} sub-epochs"
        sub_epoch = whole("sub_epoch", sub_epoch, 0, self.sub_epochs, cure)
        if self.resumed is not None and (epoch, sub_epoch) < self.resumed[:2]:
            rule = f"not before {self.resumed[:2]}, where the plan was resumed"
            cure = "ask the plan that was not resumed"
            raise wrong("(epoch, sub_epoch)", rule, (epoch, sub_epoch), cure)
        self._sized()
        return layout(self._partition, self.order.num_units(epoch), epoch, sub_epoch)

    def _step(self, steps: Layout, step: int) -> int:
        """Return `step`, if it is an unfinished one."""
        first, stop = steps.first_step, steps.num_steps
        if type(step) is int and first <= step < stop:  # no words on the fast path
            return step
        kind = f"an unfinished step of {self._what(steps)}"
        if first == stop:
            cure = "plan.account says why; use smaller batches"
            raise wrong("step", f"{kind}, and there is none", step, cure)
        cure = "plan.first_step and plan.num_steps say which there are"
        return whole("step", step, first, stop, cure, kind)

    def _edge(self, steps: Layout, name: str, step: int) -> int:
        """Return `step`, if it lies between unfinished steps, or at their start or end."""
        cure = f"name one of the unfinished steps of {self._what(steps)}, or their end"
        if steps.first_step == steps.num_steps:
            cure = f"{self._what(steps)} has no unfinished step; plan.account says why"
        return whole(name, step, steps.first_step, steps.num_steps + 1, cure)

    def _what(self, steps: Layout) -> str:
        of = f", sub-epoch {steps.sub_epoch}" if self.sub_epochs > 1 else ""
        return f"epoch {steps.epoch}{of}"

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
        start, stop = steps.first_step, steps.num_steps
        if start_step is not None:
            start = self._edge(steps, "start_step", start_step)
        if stop_step is not None:
            stop = self._edge(steps, "stop_step", stop_step)
        if start > stop:
            raise wrong("stop_step", f"at least {start}, the start_step", stop, "swap them")
        return rank, steps, start, stop
