"""A loader's arguments, and what follows from them: the running plan, and the rank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch.distributed
from torch.utils.data import get_worker_info

from indexplan import IndexPlanError, Plan
from indexplan.errors import invalid
from indexplan_torch.again import check_again
from indexplan_torch.arguments import flag
from indexplan_torch.items import Form
from indexplan_torch.ranks import check_found_ranks, discover, process_group_runs
from indexplan_torch.versions import check_callback


@dataclass(frozen=True, eq=False)
class Given:
    """The arguments of a loader or sampler.

    Parameters
    ----------
    plan : Plan
        As it was given.
    rank, world_size : int or None
        Both or neither; if neither, they are found when they are needed.
    readers : tuple of int or None
        The ranks of the process group that read the plan, if a mesh shows them.
    form : Form
        The form of the batches.
    compare : bool
        Whether ranks compare plans.
    again : int
        How many times each step is read.
    partial : bool
        Whether the loop leaves passes on purpose.
    evaluation : bool
        Whether the loop gets no batch in a step of which this rank reads nothing.
    pinned : bool
        Whether the same pass is read each time, whatever is named.
    counted : bool
        Whether a PlanLoader counts what the loop receives.
    prepared : bool
        Whether a wrapper reads that loader which looks ahead.
    limit : float or None
        After how many steps, or after which share of them, a trainer that counts the steps of
        every pass leaves each; None without one.
    """

    plan: Plan
    rank: int | None
    world_size: int | None
    readers: tuple[int, ...] | None = None
    form: Form = field(default_factory=Form)
    compare: bool = True
    again: int = 1
    partial: bool = False
    evaluation: bool = False
    pinned: bool = False
    counted: bool = False
    prepared: bool = False
    limit: float | None = None

    def __post_init__(self) -> None:
        self.form.check(self.plan)
        vars(self)["again"] = check_again(self.again, self.plan)
        for name in ("compare", "partial", "evaluation"):
            vars(self)[name] = flag(name, getattr(self, name))
        if self.evaluation and self.plan.remainder != "spread":
            rule = "'spread' where evaluation=True, to read each sample once"
            raise invalid("remainder", rule, self.plan.remainder, "leave remainder out of the plan")
        if self.evaluation and self.again > 1:
            raise invalid("again", "1 where evaluation=True", self.again, "leave again out")

    @classmethod
    def of(
        cls,
        plan: Plan,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        **others: Any,
    ) -> Given:
        """Return arguments; a mesh is only read here, because it can't be sent to workers."""
        readers = None
        if mesh is not None:
            rank, world_size = discover(rank, world_size, mesh=mesh)
            readers = tuple(sorted(mesh.mesh.flatten().tolist()))
        return cls(plan, rank, world_size, readers, **others)

    def running(self, plan: Plan) -> tuple[Plan, int]:
        """Return a plan, resumed or not, with the running world_size, and this process's rank.

        Raises
        ------
        IndexPlanError
            If the plan's world_size, as it was given, is not the running one.
        """
        rank, world_size = discover(self.rank, self.world_size)
        if plan.world_size == world_size:
            return plan, rank
        if self.plan.world_size is None:
            return plan.replace(world_size=world_size).resume(plan.start), rank
        cure = f"use plan.replace(world_size={world_size})"
        if world_size == 1:
            cure = "initialize torch.distributed first"  # torchrun and trainers do
        raise IndexPlanError(
            "world_size",
            f"must be {self.plan.world_size}, the plan's",
            f"{world_size} running",
            f"leave it out of the plan to take the running one, or {cure}",
        )

    def check_ranks(self, plan: Plan, rank: int, **alike: Any) -> None:
        """Check the ranks, and compare their plans and more, when they begin a pass."""
        if get_worker_info() is not None:
            return
        check_found_ranks(given=self.rank is not None)
        check_callback()
        if self.compare and (ranks := self.together()):
            from indexplan_torch.agreeing import compare

            compare(plan, rank, ranks, {**alike, "again": self.again})

    def together(self) -> tuple[int, ...]:
        """Return the ranks of the process group that read the plan; () if it is one, or unknown.

        Explicit ranks are taken for those of the process group if there are equally many.
        """
        if not process_group_runs():
            return ()
        readers = self.readers or tuple(range(torch.distributed.get_world_size()))
        all_of_them = self.rank is None or self.world_size == len(readers)
        return readers if len(readers) > 1 and (self.readers or all_of_them) else ()
