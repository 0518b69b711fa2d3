"""The ledger of a run: which step has read which samples, through resumes and other plans."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from indexplan.answers import Answer
from indexplan.checks import Report
from indexplan.errors import (
    Cure,
    IndexPlanError,
    PlanFileError,
    counted,
    integer,
    invalid,
    path_text,
)
from indexplan.keywords import named
from indexplan.ledger.account import LedgerAccount, account_of
from indexplan.ledger.at import At
from indexplan.ledger.file import LedgerFile
from indexplan.ledger.finding import Read, reads_in
from indexplan.ledger.history import History, Segment, history_of, resumed, same_until
from indexplan.ledger.lines import FIRST, DiscardLine, Line, RunLine, checked_note
from indexplan.ledger.seen import count_reads
from indexplan.ledger.shown import stretches_shown
from indexplan.ledger.tail import resume_of
from indexplan.ledger.verifying import verified
from indexplan.orders.base import Int64
from indexplan.partition.phases import Phase, Size
from indexplan.partition.steps import Resume
from indexplan.plan.cursor import Cursor, cursor_of
from indexplan.plan.plan import Plan, check_plan

NAME_A_RANK = "name one of the ranks that read this step"
LEAVE_OUT = "leave it out for the whole run"


@named
class Ledger(Answer):
    """What a run has read: a file with a line for each stretch of steps between two stops.

    `PlanLoader(..., ledger="run.ledger")` writes it. It then tells you which step read a sample, or
    what a step read, across all resumes, returns to checkpoints and changes of plan. The file lists
    no samples, because they can be computed from the plans. All methods count steps from the run's
    beginning. A return to a checkpoint makes later steps void: the file keeps them, but they no
    longer count.

    Parameters
    ----------
    path : str or path-like
        The file; it need not be there. Columns of its plans, such as weights, are kept next to it,
        in the folder `columns`.

    Raises
    ------
    IndexPlanError
        If `path` is not a path.
    PlanFileError
        If the file is no ledger, or damaged.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
    >>> ledger = ip.Ledger("run.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=5))
    >>> smaller = plan.replace(world_size=2).resume(ledger.cursor)
    >>> ledger.record(smaller, smaller.cursor(epoch=2, step=0))
    >>> ledger.step, ledger.reads(123)
    (70, [Read(step=18, rank=0, epoch=0, void=False), Read(step=37, rank=1, epoch=1, void=False)])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path_text("ledger", path, "pass where the file is, or shall be"))
        self._file = LedgerFile(self.path)
        # for the other rooms: what the lines add up to, and their end
        self.history = self._history_of(self._file.lines)
        self.tail = self.history.tail(self._file.hash, len(self._file.lines))

    def _history_of(self, lines: list[Line]) -> History:
        try:
            return history_of(lines, self._file.columns(), self._file.where)
        except PlanFileError:
            raise
        except IndexPlanError as error:
            raise PlanFileError(error.what, error.rule, error.got, error.cure) from error

    # --- where the run stands

    @property
    def hash(self) -> str:
        """The sha256, in hexadecimal, of the last line: what a checkpoint keeps of the ledger."""
        return self.tail.hash

    @property
    def step(self) -> int:
        """How many steps count."""
        return self.tail.step

    @property
    def plan(self) -> Plan:
        """The plan that has read the last step, not resumed.

        Raises
        ------
        IndexPlanError
            If the ledger is empty.
        """
        history = self._begun()
        return history.plans[history.newest_plan].plan

    @property
    def cursor(self) -> Cursor:
        """Where the run stands: what `plan.resume` takes.

        Raises
        ------
        IndexPlanError
            If the ledger holds no step yet.
        """
        plan = self.plan
        return cursor_of(plan.order, self._place(), plan.sub_epochs)

    def _begun(self) -> History:
        if not self.history.plans:
            cure = "pass the path of a ledger that a run has written"
            raise IndexPlanError(f"{self.path}", "must hold a line", "none", cure)
        return self.history

    def _place(self) -> Resume:
        place = self.tail.ahead or self.tail.place
        if place is None:  # a line that names a plan does not say where the run starts
            cure = "start with the plan and the checkpoint that the run started with"
            raise IndexPlanError(f"{self.path}", "must hold a step", "none", cure)
        return place

    # --- what a run writes

    def record(self, plan: Plan, cursor: Cursor, note: Mapping[str, Any] | None = None) -> None:
        """Add the steps that a plan has read, from where the ledger stands up to a cursor.

        For loops of your own: `PlanLoader` does it by itself. The lines are on disk when this
        returns. Only one process of a run may call it.

        Parameters
        ----------
        plan : Plan
            With a world_size.
        cursor : Cursor
            Where the run stands now: `plan.cursor(epoch, step=...)` after its last step.
        note : mapping, optional
            Anything of JSON types, to find the steps by, such as a trainer's own count.

        Raises
        ------
        IndexPlanError
            If the cursor is before the ledger's own, or not at the end of one of the plan's steps;
            if the plan does not continue the run; or if the note is not of JSON types.
        PlanFileError
            If another process has written the file, or it cannot be written. Nothing was written
            then.
        """
        check_plan("plan", plan)
        if not isinstance(cursor, Cursor):
            raise invalid("cursor", "a Cursor", cursor, "pass plan.cursor(...) or loader.cursor")
        lines, after = self.tail.record(plan, cursor, checked_note(note))
        self._file.keep_columns(plan)  # of a known plan, too, as they may be lost since
        self._append(lines, after.ahead)

    def begin(
        self,
        plan: Plan,
        hash: str | None = None,  # noqa: A002 (as in a state)
        *,
        skip: bool = False,
    ) -> None:
        """Continue with a plan from where it starts: steps past that place become void.

        Parameters
        ----------
        plan : Plan
            With a world_size. Without `skip`, it must start where the ledger stands, where it stood
            after some step, or at the very beginning.
        hash : str, optional
            The ledger's hash in a checkpoint's state, to return to as `rewind` does.
        skip : bool, default False
            Whether the plan may start past the place where the run stands. `account` then counts
            what is in between as skipped.

        Raises
        ------
        IndexPlanError
            If the run never stood there, or does not continue with this plan; or, with a hash, as
            `rewind` does. Nothing was written then.
        PlanFileError
            As `record` does.
        """
        check_plan("plan", plan)
        place = resume_of(plan.start)
        stood = False  # whether the run did so at the start of the plan, perhaps after a jump
        anywhere = place.unit == (0, 0)  # whether it starts over, or returns to where none counted
        if hash is not None:
            then = self._live_until(hash)
            back, anywhere = self._back_to(then), anywhere or not then
        else:
            step = self._step_at(place)
            stood = step is not None
            step = 0 if anywhere else step
            back = [DiscardLine(step)] if step is not None and step < self.step else []
        stood = stood or place == self.tail.ahead
        tail = replace(self.tail, ahead=None)
        if back:
            lines = [*self._file.lines, *back]
            tail = self._history_of(lines).tail(tail.past(back).hash, len(lines))
        more, tail = tail.name(plan)
        if not tail.stands(plan):
            ahead = tail.place is not None and place.unit > tail.place.unit
            if not (anywhere or (ahead and (skip or stood))):
                raise self._never_stood(place, ahead=ahead)
        self._file.keep_columns(plan)
        self._append([*back, *more], tail.skipping(plan).ahead)

    def rewind(self, to: int | str) -> None:
        """Return to a checkpoint: steps that came after it become void.

        Parameters
        ----------
        to : int or str
            The step with which a run continues from the checkpoint, 0 <= to <= `ledger.step`; or
            the ledger's hash in the checkpoint's state. If the steps before the checkpoint have
            become void since, they count again, and new lines say so.

        Raises
        ------
        IndexPlanError
            If there is no such step, or no line has this hash: it is that of another run.
        PlanFileError
            As `record` does.
        """
        if isinstance(to, str):
            self._append(self._back_to(self._live_until(to)))
            return
        cure = "pass the step that the checkpoint goes on with, or the hash in its state"
        step = integer("to", to, 0, self.step + 1, cure)
        self._append([DiscardLine(step)] if step < self.step else [])

    def _back_to(self, then: list[Segment]) -> list[Line]:
        """Return the lines after which those steps count that did so after an earlier line."""
        same = same_until(then, self.history.live)
        lines: list[Line] = [DiscardLine(same)] if same < self.step else []
        for again in self.history.cut_off([*then], same):
            where = again.start, again.stop, again.note
            lines.append(RunLine(again.plan, again.step, again.steps, *where))
        return lines

    def _live_until(self, hash: str) -> list[Segment]:  # noqa: A002
        """Return what counted when the ledger ended with the line of a checkpoint."""
        hashes = [FIRST, *self._file.hashes]  # the first is that of a state without a line
        if not isinstance(hash, str) or hash not in hashes:
            rule = "the hash of one of its lines, as the run that is loaded has written it"
            cure = "pass the ledger of the run whose checkpoint is loaded, or a copy of it"
            raise invalid(f"the checkpoint's ledger, for {self.path},", rule, hash, cure)
        if hash == self.hash:
            return self.history.live
        return self._history_of(self._file.lines[: hashes.index(hash)]).live

    def _append(self, lines: list[Line], ahead: Resume | None = None) -> None:
        if lines:
            first = len(self._file.lines) + 1
            self._file.append(lines)
            for number, line in enumerate(lines, first):
                self.history.add(line, number)
        tail = self.history.tail(self._file.hash, len(self._file.lines))
        self.tail = replace(tail, ahead=ahead)

    def _step_at(self, place: Resume) -> int | None:
        """Return the run's step before which it stood at a place; None if it read none there."""
        for segment in reversed(self.history.live):
            if segment.stop.unit == place.unit:  # the run may have skipped what follows there
                return int(segment.end)
            if segment.start.unit == place.unit:
                return int(segment.step)
            if segment.start.unit < place.unit < segment.stop.unit:
                step = self.history.walk(segment).step_at(place)
                return None if step is None else self.history.line_start(segment) + step
        return None

    def _never_stood(self, place: Resume, *, ahead: bool) -> IndexPlanError:
        rule = f"started where the run in {self.path} stood after one of its steps"
        cure = "load the checkpoint's state, or give this run a ledger of its own"
        if ahead:  # a cursor alone does not say whether what lies between was read
            cure = (
                "load the checkpoint's state; or record what was read up to there; or, to skip "
                "it, use loader.move(plan) where the run stands, or ledger.begin(plan, skip=True)"
            )
        return invalid("plan", rule, f"a start at {tuple(place)}", cure)

    # --- what a run has read

    def at(self, step: int) -> At:
        """Return what read a step of the run: its plan, and where that stood.

        Raises
        ------
        IndexPlanError
            If the step does not count.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
        >>> ledger = ip.Ledger("at.ledger")
        >>> ledger.record(plan, plan.cursor(epoch=1, step=5))
        >>> print(ledger.at(27))
        step 27: epoch 1, step 2, on 4 ranks; position 80; line 2
        """
        if not self.step:
            none = "pass the path of a ledger that a run has written"
            raise invalid("step", "one that counts, and there is none", step, none)
        cure = Cure("ledger.step is how many there are", "see them with `indexplan show`")
        step = integer("step", step, 0, self.step, cure)
        segment = self.history.holding(step)
        part, number = self.history.walk(segment).at(step - self.history.line_start(segment))
        plan = self.history.plans[segment.plan].plan
        place = Resume(*part.where, number, part.steps.interval(number)[0])
        return At(
            global_step=step,
            plan=resumed(plan, segment.start),
            epoch=place.epoch,
            sub_epoch=place.sub_epoch,
            step=number,
            cursor=cursor_of(plan.order, place, plan.sub_epochs),
            line=segment.line,
            note=segment.note,
        )

    def batch(self, step: int, rank: int) -> Int64:
        """Return the samples that a rank read in a step of the run.

        Returns
        -------
        numpy.ndarray
            int64, as `Plan.batch` returns.

        Raises
        ------
        IndexPlanError
            If the step does not count, or there was no such rank.
        """
        at = self.at(step)
        rank = integer("rank", rank, 0, at.plan.world_size or 1, NAME_A_RANK)
        return at.plan.batch(at.epoch, at.sub_epoch, step=at.step, rank=rank)

    def replay(self, step: int) -> Plan:
        """Return a plan of one rank that reads a step again, with all that follows, on one machine.

        Its batch is that of all ranks together, rank after rank, where the plan has no balance.

        Raises
        ------
        IndexPlanError
            If the step does not count.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
        >>> ledger = ip.Ledger("replay.ledger")
        >>> ledger.record(plan, plan.cursor(epoch=1, step=5))
        >>> again, at = ledger.replay(27), ledger.at(27)
        >>> len(again.batch(at.epoch, step=at.step, rank=0))
        40
        """
        at = self.at(step)
        plan = at.plan
        ranks = plan.world_size or 1
        if plan.global_batch_size is not None:
            alone = plan.replace(world_size=1)
        else:
            sizes: Any = plan.batch_size
            if isinstance(sizes, tuple) and isinstance(sizes[0], Phase):
                whole: Any = [replace(each, size=_times(each.size, ranks)) for each in sizes]
            else:
                whole = _times(sizes, ranks)
            alone = plan.replace(world_size=1, batch_size=whole)
        return alone.resume(at.cursor)

    def reads(self, sample: int, *, void: bool = False) -> list[Read]:
        """Return each read of a sample, in the order of the run's steps.

        Parameters
        ----------
        sample : int
            0 <= sample < num_samples of the run's largest order. A source that joined counts, even
            if the run later returned to an earlier checkpoint.
        void : bool, default False
            Whether reads that a return to a checkpoint has undone are returned too; they come
            last.

        Returns
        -------
        list of Read
            Of each the run's step, the rank and the order's epoch. Padded slots count as reads.

        Raises
        ------
        IndexPlanError
            If the sample is not one of the dataset, or the ledger is empty.
        """
        history = self._begun()
        cure = "name one of the samples of the run's dataset"
        sample = integer("sample", sample, 0, history.num_samples, cure)
        found = sorted(reads_in(history, history.live_stretches, sample))
        gone = [history.stretches(segments) for segments in history.void] if void else []
        undone = [read for each in gone for read in reads_in(history, each, sample)]
        return found + sorted(read._replace(void=True) for read in undone)

    def seen(self, samples: ArrayLike, step: int | None = None) -> Int64:
        """Return how often the run had read each of some samples before a step; by default, so far.

        Padded repeats count. The cost is that of a `locate` in each epoch.

        Returns
        -------
        numpy.ndarray
            int64, the shape of `samples`.

        Raises
        ------
        IndexPlanError
            If a sample is not one of the dataset, the run has fewer steps, or the ledger is empty.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
        >>> ledger = ip.Ledger("seen.ledger")
        >>> ledger.record(plan, plan.cursor(epoch=1, step=1))
        >>> ledger.seen([0, 7]), ledger.seen([0, 7], step=3)
        (array([2, 1]), array([1, 1]))
        """
        history = self._begun()
        cure = "pass a number of steps that the run has read"
        step = self.step if step is None else integer("step", step, 0, self.step + 1, cure)
        return count_reads(history, history.before(step), samples)

    def account(self, epoch: int | None = None) -> LedgerAccount:
        """Return what became of an epoch's units; by default, of those of all epochs so far.

        What is left to read is counted by the plan that has read the last step.

        Raises
        ------
        IndexPlanError
            If the ledger is empty. For a given epoch, also if the ledger holds no step yet, or the
            run has not begun the epoch, and does not begin it with its next step.
        """
        history = self._begun()
        if epoch is not None:
            place = self._place()
            first = history.begun.epoch if history.begun else 0
            epoch = integer("epoch", epoch, first, place.epoch + 1, LEAVE_OUT)
        return account_of(history, epoch)

    def verify(self, hash: str | None = None) -> Report:  # noqa: A002 (the field's name in a state)
        """Check that no byte of the file has changed, and that its lines follow by arithmetic.

        Parameters
        ----------
        hash : str, optional
            The hash in a checkpoint's state: its line must be there. Without it, nobody can see
            that the last lines were cut off.

        Returns
        -------
        Report
            `report.ok`, and the problems by check; `print(report)` to read it.
        """
        return verified(self._file, hash)

    def to_dict(self) -> dict[str, Any]:
        """Return the run's segments as JSON types."""
        rows = [(row, False) for row in self.history.live]
        rows += [(row, True) for gone in self.history.void for row in gone]
        return {
            "path": str(self.path),
            "step": self.step,
            "hash": self.hash,
            "segments": [self._row(row, void=void) for row, void in sorted(rows)],
        }

    def _row(self, segment: Segment, *, void: bool) -> dict[str, Any]:
        fields = segment._asdict()
        places = {"from": list(fields.pop("start")), "to": list(fields.pop("stop"))}
        ranks = self.history.plans[segment.plan].line.plan["world_size"]
        return {**fields, **places, "void": void, "world_size": ranks}

    def __str__(self) -> str:
        plans, returns = len(self.tail.plans), len(self.history.void)
        void = sum(each.steps for gone in self.history.void for each in gone)
        parts = [
            counted(self.step, "step") + " in " + counted(len(self.history.live), "segment"),
            counted(plans, "plan"),
        ]
        if returns:
            parts.append(f"{counted(returns, 'return')} to a checkpoint, {void:,} void")
        lines = [f"{self.path}: {', '.join(parts)}"]
        return "\n".join(lines + stretches_shown(self.history))

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, step={self.step})"


def _times(size: Size, ranks: int) -> Size:
    """Return the size of a batch of all ranks: the innermost part has those of all."""
    return size * ranks if isinstance(size, int) else (*size[:-1], size[-1] * ranks)
