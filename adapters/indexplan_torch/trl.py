"""Plans under TRL's GRPOTrainer and RLOOTrainer: a callback that reads the prompts by an order.

TRL generates completions for a global batch of prompts once, and trains on them for several steps
of its loop. In each of these it asks its loader for the same prompts again.
"""

from __future__ import annotations

from typing import Any

from indexplan import IndexPlanError, Order, Plan, Repeat
from indexplan.errors import invalid
from indexplan_torch.counting_transformers import KEPT
from indexplan_torch.transformers import KeepState, keep
from indexplan_torch.versions import private

__all__ = ["ReadPrompts"]


class ReadPrompts(KeepState):
    """Reads a trainer's prompts in an order: `trainer.add_callback(ReadPrompts(trainer, order))`.

    Each prompt is read `num_generations` times in a row, in global batches of
    `generation_batch_size`. Prompts that don't fill one are read with the next epoch. The layout is
    TRL's: process r gets the r-th part of a global batch. Each global batch is repeated as often as
    TRL trains on its completions, `num_iterations * steps_per_generation` times.

    A checkpoint holds the loader's state, as with `KeepState`, which this includes. A run resumes
    after any optimizer step, on any number of processes that leaves `generation_batch_size` as it
    is. TRL saves no completions: if it stopped before it had trained on all of a global batch, it
    generates for that batch once more, and trains on it for the steps that were left.

    Parameters
    ----------
    trainer : trl.GRPOTrainer or trl.RLOOTrainer
        A trainer with a map-style `train_dataset`. ReadPrompts extends its methods.
    order : Order
        The sequence in which each epoch reads the prompts, with as many samples as the dataset.
    ledger : str, path-like, Ledger or False, optional
        As for `PlanLoader`: where the run records which prompts its steps have read. A step of the
        ledger is a global batch.

    Raises
    ------
    IndexPlanError
        If the trainer is another one, `order` is no Order, or this version of transformers or TRL
        lacks what this extends. When the training starts: if the dataset is not map-style or has
        another number of prompts.

    Examples
    --------
    In place of TRL's own shuffling, which replays the first epoch's order after a resume::

        trainer = GRPOTrainer(model, reward_funcs, arguments, train_dataset=prompts)
        trainer.add_callback(ReadPrompts(trainer, ip.Shuffle(len(prompts), seed=1)))
        trainer.train(resume_from_checkpoint=checkpoint)
    """

    def __init__(self, trainer: Any, order: Order | Any, *, ledger: Any = None) -> None:
        if not isinstance(order, Order):
            cure = "pass such as indexplan.Shuffle(len(dataset))"
            raise invalid("order", "an order of prompts", order, cure)
        if not hasattr(trainer, "num_generations"):
            raise IndexPlanError(
                "trainer",
                "must be TRL's GRPOTrainer or RLOOTrainer, which generate from prompts",
                type(trainer).__name__,
                "use indexplan_torch.transformers.use_plan for other trainers",
            )
        for name in ("_step", "_buffered_inputs", "num_iterations"):
            private("trl", trainer, name)
        super().__init__(trainer)

        def make_plan() -> Plan:
            return Plan(
                Repeat(order, copies=trainer.num_generations),
                global_batch_size=trainer.args.generation_batch_size,
                remainder="carry",
            )

        again = trainer.num_iterations * trainer.args.steps_per_generation
        keep(trainer, make_plan, None, {"again": again, "ledger": ledger})

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Let TRL generate when the loader yields a new global batch; it counts from the resume.

        Completions of an earlier call of `train` are forgotten.
        """
        trainer = self.trainer
        kept = getattr(trainer, KEPT)
        steps = kept.loader.run.steps(kept.first)
        trainer._step, trainer._buffered_inputs = steps.start, None  # noqa: SLF001 (checked above)
