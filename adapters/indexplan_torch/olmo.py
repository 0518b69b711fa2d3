"""Plans under OLMo-core: the data loader that its Trainer reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from olmo_core.data.collator import DataCollator
from olmo_core.data.data_loader import TextDataLoaderBase

from indexplan import Ledger, Order, Plan
from indexplan.errors import integer, invalid, shown
from indexplan_torch.arguments import check_state, count
from indexplan_torch.loader import Options, PlanLoader
from indexplan_torch.ranks import discover, process_group_runs

if TYPE_CHECKING:
    import os
    from pathlib import Path
    from typing import Unpack

__all__ = ["PlanDataLoader"]

STATE_VERSION = 1
FULL = ("carry", "drop", "pad")  # these give batches of rank_batch_size, which the trainer needs


class PlanDataLoader(TextDataLoaderBase):
    """A data loader for OLMo-core's Trainer that reads an order on any number of ranks.

    Use it in place of NumpyFSLDataLoader. A run can resume in the middle of an epoch on other
    ranks. Before any step, you can set the global batch size to any multiple of what the ranks read
    at once. Epochs start at 1 and batch sizes are in tokens, like everywhere in OLMo-core.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style, with as many samples as the order. Prepare OLMo-core's own datasets first.
    order : Order
        The sequence in which each epoch reads the samples.
    collator : callable
        Turns samples into a batch, like OLMo-core's DataCollator; the batch is a dict with
        "input_ids".
    global_batch_size : int
        Tokens that all ranks together read in a step: a multiple of
        sequence_length * dp_world_size.
    sequence_length : int
        Tokens in each unit of the order, as returned by the collator.
    work_dir : path
        As for OLMo-core's loaders; this one writes nothing there.
    dp_world_size, dp_rank : int, optional
        How many data-parallel ranks there are, and which this is. If you leave both out, they are
        found like a `PlanLoader`'s.
    fs_local_rank : int, optional
        As for OLMo-core's loaders.
    remainder : {"carry", "drop", "pad"}, default "carry"
        What happens to an epoch's last step if it isn't full: it is filled with the next epoch's
        first samples, dropped, or filled with samples of this epoch again.
    ledger : str, path-like, Ledger or False, optional
        As for `PlanLoader`: the file in which the run records what its steps have read. Mock
        batches are not recorded, and an epoch can't start over. Pass it on all ranks of the process
        group; the first of them writes.
    **options
        Options of DataLoader: num_workers, pin_memory and so on.

    Raises
    ------
    IndexPlanError
        If a size or the rank is out of range, or an option belongs to the plan. In the loop, if the
        run can't continue in the ledger.

    Notes
    -----
    The trainer's checkpoint keeps `state_dict`; all ranks return the same. Like OLMo-core's own
    loaders, this one doesn't load the batch size: the script and its callbacks set it.
    """

    # attributes of OLMo-core's loaders, which the trainer reads
    _global_batch_size: int
    batches_processed: int
    tokens_processed: int

    def __init__(
        self,
        dataset: Any,
        order: Order,
        *,
        collator: DataCollator | Callable[[Any], dict[str, Any]],
        global_batch_size: int,
        sequence_length: int,
        work_dir: str | Path,
        dp_world_size: int | None = None,
        dp_rank: int | None = None,
        fs_local_rank: int | None = None,
        remainder: Literal["carry", "drop", "pad"] = "carry",
        ledger: str | os.PathLike[str] | Ledger | Literal[False] | None = None,
        **options: Unpack[Options],
    ) -> None:
        rank, ranks = discover(dp_rank, dp_world_size)
        if remainder not in FULL:
            rule = f"one of {', '.join(FULL)}, as each rank's batches must be equally large"
            raise invalid("remainder", rule, remainder, "leave it out")
        cure = "pass the tokens of each sample, as the collator returns them"
        self.sequence_length = integer("sequence_length", sequence_length, 1, 2**62, cure)
        self._step_tokens = self.sequence_length * ranks  # in a step with one unit for each rank
        units = self._units(global_batch_size)
        super().__init__(
            collator=collator,
            work_dir=work_dir,
            global_batch_size=units * self.sequence_length,
            dp_world_size=ranks,
            dp_rank=rank,
            fs_local_rank=fs_local_rank,
        )
        self.dataset, self._options = dataset, options
        plan = Plan(order, world_size=ranks, global_batch_size=units, remainder=remainder)
        self._loader = self._reading(plan, ledger=ledger, **options)
        self._number = 0  # of the epoch, counted from 0: the run's own may be the next one already

    def _units(self, tokens: int) -> int:
        """Return the number of units in a global batch, or refuse its size."""
        cure = "pass a multiple of sequence_length * dp_world_size"
        tokens = integer("global_batch_size", tokens, 1, 2**62, cure)
        if tokens % self._step_tokens:
            rule = f"a multiple of {self._step_tokens} tokens, sequence_length * dp_world_size"
            raise invalid("global_batch_size", rule, tokens, "change one of the three")
        return tokens // self.sequence_length

    def _reading(self, plan: Plan, **options: Any) -> PlanLoader:
        ranks: dict[str, Any] = {"rank": self.dp_rank, "world_size": self.dp_world_size}
        return PlanLoader(self.dataset, plan, **ranks, collate_fn=self.collator, **options)

    @property
    def _plan(self) -> Plan:
        """The plan from where the run started."""
        return self._loader.run.running()[0]

    @property
    def _steps_left(self) -> int:
        """The number of steps in the epoch that the loop has not received."""
        run = self._loader.run
        if run.coming > self._number or self._number in run.over:
            return 0
        steps, current = self._plan.steps(self._number), run.reading
        begun = current is not None and current.number == self._number
        return steps.stop - (current.step if current is not None and begun else steps.start)

    # --- what the batch size scheduler sets

    @property
    def global_batch_size(self) -> int:
        """Tokens that all ranks together read in a step; can be set before any step.

        Raises
        ------
        IndexPlanError
            If you set it to something that isn't a multiple of sequence_length * dp_world_size.
        """
        return self._global_batch_size

    @global_batch_size.setter
    def global_batch_size(self, tokens: int) -> None:
        units, plan = self._units(tokens), self._loader.plan
        if units != plan.global_batch_size:
            self._loader.move(plan.replace(global_batch_size=units))
            self._global_batch_size = units * self.sequence_length
            self.batches_processed = self.tokens_processed // self._global_batch_size

    # --- epochs

    @property
    def total_batches(self) -> int:
        """Batches of the current or next epoch: those processed plus those left."""
        return self.batches_processed + self._steps_left

    def batches_in_epoch(self, epoch: int) -> int:
        """Return the number of batches in an epoch; under "carry" it can vary by one.

        Raises
        ------
        IndexPlanError
            If the epoch was over when the run was resumed.
        """
        number = self._counted(epoch)
        if number == self._number:
            return self.total_batches
        return len(self._steps(number))

    def _counted(self, epoch: int) -> int:
        """Return an epoch's number, counted from 0."""
        return integer("epoch", epoch, 1, 2**32, "count from 1, as OLMo-core does") - 1

    def _steps(self, number: int) -> range:
        """Return an epoch's steps; refuse one that was finished when the run was resumed."""
        first = self._plan.start.epoch
        if number < first:
            rule = f"{first + 1} or later, where the run was resumed, as earlier ones are finished"
            cure = "pass none; or leave out reset() after a last step, which the Trainer calls"
            raise invalid("epoch", rule, number + 1, cure)
        return self._plan.steps(number)

    def reshuffle(self, epoch: int | None = None, **kwargs: Any) -> None:
        """Begin an epoch, or continue the one that the loaded state was saved in.

        Parameters
        ----------
        epoch : int, optional
            Counted from 1. By default, the epoch that isn't finished, or else the next.
        **kwargs
            Arguments of other loaders; ignored.

        Raises
        ------
        IndexPlanError
            If another epoch isn't finished, or the epoch was over when the run was resumed.
        """
        del kwargs
        number = self._number if epoch is None else self._counted(epoch)
        if number != self._number:
            if self.tokens_processed and self._steps_left:
                rule = f"{self._number + 1}, which is not read to its end"
                raise invalid("epoch", rule, epoch, "read it, or call reset() to leave it")
            self.reset()
            self._steps(number)  # refuses one that is finished
            self._number = number
            self._loader.set_epoch(number)
        self._epoch = number + 1

    def reset(self) -> None:
        """End an epoch; one that isn't finished starts over if you read it again."""
        left, tokens = self._steps_left, self.tokens_processed
        super().reset()
        if left and tokens:
            plan, recorder = self._loader.plan, self._loader.run.recorder
            self._loader = self._reading(plan, ledger=recorder, **self._options)
        elif not left:
            self._number += 1
        self._loader.set_epoch(self._number)

    # --- batches

    def _iter_batches(self) -> Iterator[dict[str, Any]]:
        """Yield this rank's remaining batches of the epoch, even if their size is changed."""
        if not self._steps_left:
            return
        run = self._loader.run
        if run.recorder and process_group_runs():  # some may read the same
            everyone = tuple(range(torch.distributed.get_world_size()))
            run.given = replace(run.given, readers=everyone)
        if run.reading is not None and run.reading.number == self._number:
            run.move(self._loader.plan)  # a loop that was left goes on
        yield from self._loader

    def get_mock_batch(self) -> dict[str, Any]:
        """Return the run's first batch, for the trainer's trial step."""
        plan = self._plan
        with torch.random.fork_rng(devices=[]):  # a DataLoader draws a seed, for no worker here
            loader = self._reading(plan.replace(world_size=plan.world_size), compare=False)
            batch: dict[str, Any] = next(iter(loader))
        return batch

    # --- the trainer's checkpoint

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, equal on all ranks; the trainer's checkpoint keeps it.

        Raises
        ------
        IndexPlanError
            If the ledger's run stands elsewhere, as an epoch was left before its end.
        """
        kept = self._loader.state_dict()
        state = {
            "version": STATE_VERSION,
            "cursor": kept["cursor"],
            "epoch": self._number + 1,
            "tokens_processed": self.tokens_processed,
            "dataset_fingerprint": self._fingerprint,
        }
        return {**state, "ledger": kept["ledger"]} if "ledger" in kept else state

    @property
    def _fingerprint(self) -> Any:
        """The fingerprint of one of OLMo-core's datasets; None for another dataset."""
        return getattr(self.dataset, "fingerprint", None)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume from a state, on any number of ranks and with any batch size.

        Raises
        ------
        IndexPlanError
            If it is not a state, or belongs to another order or dataset; or to a run with a ledger,
            if there is none.
        """
        fields = {"version", "cursor", "epoch", "tokens_processed", "dataset_fingerprint"}
        cure = "finish the run with the loader that it began with, or start another run"
        rule, ledger = "must be a PlanDataLoader's", frozenset({"ledger"})
        check_state(state_dict, fields, STATE_VERSION, rule, cure, more=ledger)
        saved = state_dict["dataset_fingerprint"]
        if type(saved) is not type(self._fingerprint) or saved != self._fingerprint:
            cure = "pass the dataset that the run began with, or start another run"
            raise invalid("dataset", f"the saved one, {shown(saved)}", self._fingerprint, cure)
        tokens = count("a state's tokens_processed", state_dict["tokens_processed"])
        epoch = self._counted(state_dict["epoch"])
        kept: dict[str, Any] = {
            name: state_dict[name] for name in ("cursor", "ledger") if name in state_dict
        }
        self._loader.load_state_dict({"version": STATE_VERSION, "pass": epoch, **kept})
        self._number, self._epoch = epoch, epoch + 1
        self.tokens_processed = tokens
        self.batches_processed = tokens // self.global_batch_size
