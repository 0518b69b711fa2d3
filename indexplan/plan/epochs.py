"""Which epochs of a plan can have other steps than the rest, and that each of them has one."""

from __future__ import annotations

from indexplan.errors import Cure, IndexPlanError, counted
from indexplan.partition.account import changes
from indexplan.partition.steps import Partition, phase_in_force, steps_in
from indexplan.plan.layout import Layout
from indexplan.seeds import EPOCH_STOP


def different_epochs(layout: Layout) -> list[int]:
    """Return epochs from the start of a plan on: all others have as many units as one of them.

    And the same phases. Steps change where a phase begins, which can be an epoch later than its
    place, and where the order says that the number of units does. Of an order that does not name
    those epochs, they are the first four, and those of the phases.
    """
    partition = layout.partition
    start = 0 if partition.resume is None else partition.resume.epoch
    found = {start, *partition.extent.changed}
    for at in partition.ats:
        found.add(at[0] if not isinstance(at, int) else partition.extent.holding(at)[0])
    some = range(2 if partition.extent.sums_up else 4)  # else enough for two whole ones in a row
    near = {epoch + more for epoch in found for more in some}
    return sorted(epoch for epoch in near if start <= epoch < EPOCH_STOP)


def check_every_epoch_reads(layout: Layout) -> None:
    """Raise `IndexPlanError` if an epoch of a plan has no step: only "drop" can do that.

    It may be without one where little of it is left to read: in the epoch of a resume. Of an order
    that does not name the epochs at which its number of units changes, one may be short by itself,
    and only two in a row are refused. Epochs that a plan directory lacks, of an order that is not
    known here, are refused where somebody asks for them.
    """
    partition, order, resume = layout.partition, layout.order, layout.partition.resume
    if not (partition.policy.leaves and partition.sizes):
        return
    parts, largest = partition.sub_epochs, max(partition.sizes)
    before: int | None = None  # the last epoch that was without a step
    for epoch in different_epochs(layout):
        try:
            num_units = order.num_units(epoch)
        except IndexPlanError:
            continue
        is_cut = resume is not None and resume.epoch == epoch and resume != (epoch, 0, 0, 0)
        if -(-num_units // parts) >= largest or is_cut:
            continue
        size = _too_large(partition, epoch)
        if size is not None and (partition.extent.sums_up or before == epoch - 1):
            raise _reads_nothing(epoch, num_units, parts, size)
        before = epoch if size is not None else None


def _too_large(partition: Partition, epoch: int) -> int | None:
    """Return the global batch that the epoch cannot fill; None if it has a step.

    Sub-epochs that lack excluded samples differ in length from epoch to epoch. So in an epoch of
    one phase the mean sub-epoch has to fill a step: then the longest does, in all such epochs.
    """
    parts = changes(partition, epoch)[:-1]
    phases = {phase_in_force(partition, epoch, part) for part in parts}
    size = max(partition.sizes[phase] for phase in phases)
    if len(phases) == 1:
        num_units = partition.extent.units(epoch)
        return None if -(-num_units // partition.sub_epochs) >= size else size
    found = (steps_in(partition, epoch, part) for part in parts)
    return None if any(steps.num_steps for steps in found) else size


def _reads_nothing(epoch: int, num_units: int, parts: int, size: int) -> IndexPlanError:
    got = f"global batches of {counted(size, 'unit')}, and {counted(num_units, 'unit')} in it"
    cure = f"let a global batch have at most {counted(-(-num_units // parts), 'unit')}"
    if parts > 1:
        got += f", in {parts} sub-epochs"
        cure += f", or use at most {counted(num_units // size, 'sub-epoch')}" * (size <= num_units)
    return IndexPlanError(
        f"epoch {epoch}",
        "must have a full step, as remainder='drop' reads no other",
        got,
        Cure(
            f"{cure}, or use remainder='spread' or 'pad'",
            f"{cure}, or use --remainder spread or pad",
        ),
    )
