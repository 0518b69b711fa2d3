"""The end of a ledger: what the next lines depend on, so that all ranks write the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from indexplan.errors import IndexPlanError, invalid
from indexplan.ledger.lines import FIRST, Line, PlanLine, RunLine, sha256_of, text_of
from indexplan.ledger.walking import LINE_PARTS, lines_to, next_part
from indexplan.partition.steps import Resume
from indexplan.plan.cursor import Cursor, cursor_of
from indexplan.plan.plan import Plan, dict_of, layout_of

PLACES = ("place", "begun", "ahead")
OTHER = "give this run a ledger of its own, or pass the plan that continues the one in the ledger"


@dataclass(frozen=True)
class Tail:
    """Where a ledger ends: a small value, equal on all ranks, from which lines are computed.

    Parameters
    ----------
    hash : str
        The sha256, in hexadecimal, of the last line; `FIRST` where there is none.
    num_lines : int
        How many lines there are.
    step : int
        How many steps of the run count.
    place : Resume or None
        Where the run stands; None before it has begun.
    plans : mapping of str to int
        The newest line of each plan, by fingerprint.
    named : mapping or None
        The dict form of the plan that has read the last of these steps, or else the first void
        one; None before the run has begun.
    line : int
        Its line; 0 before the run has begun.
    begun : Resume or None
        The first place at which steps start, void or not; None before the run has begun.
    ahead : Resume or None
        Where the next step starts if the run skips some before it, or returns to before its first
        one; no line says so yet.
    """

    hash: str = FIRST
    num_lines: int = 0
    step: int = 0
    place: Resume | None = None
    plans: Mapping[str, int] = field(default_factory=dict)
    named: Mapping[str, Any] | None = None
    line: int = 0
    begun: Resume | None = None
    ahead: Resume | None = None

    def name(self, plan: Plan) -> tuple[list[Line], Tail]:
        """Return the line that names a plan, if it is new, and the tail after it.

        Parameters
        ----------
        plan : Plan
            With a world_size; where it was resumed does not matter.

        Raises
        ------
        IndexPlanError
            If its world_size is open, or the run cannot continue with it from where it stands.
        """
        layout_of(plan).world_size  # noqa: B018 (raises if it is open)
        named, fingerprint = _named(plan)
        if self.named is not None and self.place is not None:
            check_continued(plan, self.named, self.place)
        if fingerprint in self.plans:
            return [], self
        lines: list[Line] = [PlanLine(named, None)]
        plans = {**self.plans, fingerprint: self.num_lines + 1}
        return lines, replace(self.past(lines), plans=plans)

    def stands(self, plan: Plan) -> bool:
        """Return whether the run stands where a plan starts: no step of the plan lies between."""
        return self._same_step(plan, self.ahead or self.place)

    def skipping(self, plan: Plan) -> Tail:
        """Return the tail of a run that skips the steps up to where a plan starts."""
        place = resume_of(plan.start)
        if self.place is not None:
            check_jump(self.place, place)
        return self if self.stands(plan) else replace(self, ahead=place)

    def begins(self, plan: Plan) -> bool:
        """Return whether no step of the ledger counts where a plan starts.

        It is empty, or its first step starts there, or nothing can have been read before.
        """
        return resume_of(plan.start).unit == (0, 0) or self._same_step(plan, self.begun)

    def _same_step(self, plan: Plan, stands: Resume | None) -> bool:
        """Return whether no step of a plan lies between a place (or none) and its start."""
        place = resume_of(plan.start)
        if stands is None or stands == place:
            return True
        try:
            plan.resume(cursor_of(plan.order, stands, plan.sub_epochs))
            one, other = (next_part(layout_of(plan), at) for at in (stands, place))
        except IndexPlanError:  # of another order
            return False
        if one is None or other is None:
            return False
        reads = [(each.where, each.steps.interval(each.first)) for each in (one, other)]
        return reads[0] == reads[1]

    def record(self, plan: Plan, cursor: Cursor, note: dict[str, Any]) -> tuple[list[Line], Tail]:
        """Return the lines of the steps that a plan read up to a cursor, and the tail after them.

        Raises
        ------
        IndexPlanError
            If the run cannot continue with the plan, it starts past the place where the ledger
            stands, or no step of it ends at the cursor.
        """
        lines, after = self.name(plan)
        begin = resume_of(plan.start)
        start = self.ahead or self.place or begin
        if begin.unit > start.unit and not self.stands(plan):
            rule = f"resumed where the ledger stands, at {tuple(start)}, or before"
            cure = "record what was read up to there first, or call ledger.begin(plan, skip=True)"
            raise invalid("plan", rule, f"a start at {tuple(begin)}", cure)
        stop = cursor.checked(plan.order, plan.sub_epochs)
        named, fingerprint = _named(plan)
        number, step = after.plans[fingerprint], self.step
        read: list[RunLine] = []
        pieces = [] if stop == start else lines_to(layout_of(plan), start, stop)
        for steps, place in pieces:
            read.append(RunLine(number, step, steps, start, place, note))
            step, start = step + steps, place
        if not read:
            return lines, after
        first = read[0].start  # before the first of all, of a run that had jumped there
        begun = min(self.begun or first, first, key=lambda place: place.unit)
        after = replace(after.past(read), step=step, place=start, begun=begun, ahead=None)
        return [*lines, *read], replace(after, named=named, line=number)

    def past(self, lines: Sequence[Line]) -> Tail:
        """Return the tail after some more lines, of which it takes only the hash."""
        digest = self.hash
        for line in lines:
            digest = sha256_of(text_of(line, digest))
        return replace(self, hash=digest, num_lines=self.num_lines + len(lines))

    def to_dict(self) -> dict[str, Any]:
        """Return the tail as JSON can write it, to tell other ranks."""
        return {**vars(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tail:
        """Return the tail that `to_dict` described."""
        places = {name: data[name] and Resume(*data[name]) for name in PLACES}
        return cls(**{**data, **places})


def check_jump(place: Resume, to: Resume) -> None:
    """Raise `IndexPlanError` if a run skips more epochs at once than a line may have."""
    if to.epoch - place.epoch > LINE_PARTS:
        rule = f"at most {LINE_PARTS} epochs past epoch {place.epoch}, where the run stands"
        raise invalid("a jump", rule, f"one to epoch {to.epoch}", "skip fewer epochs at a time")


def resume_of(cursor: Cursor) -> Resume:
    """Return a cursor's numbers, without its order."""
    return Resume(cursor.epoch, cursor.sub_epoch, cursor.step, cursor.position)


def check_begins(plan: Plan, tail: Tail, path: object) -> None:
    """Raise unless a run can go on with a plan from a state that names no line of its ledger.

    It can if the ledger is empty, or begins where the state stands, so that nothing in it counts
    then. Anywhere else, the steps before the state may be others than the run has read, as it has
    read some of them without the ledger.

    Raises
    ------
    IndexPlanError
        With what to do instead.
    """
    if not tail.begins(plan):
        raise IndexPlanError(
            f"{path}",
            "must be empty, or begin where the state stands, as a state without a ledger's hash "
            "doesn't say which of its steps were read",
            f"a ledger that begins at {tuple(tail.begun or ())}, and a state at "
            f"{tuple(resume_of(plan.start))}",
            "load a state that was saved with this ledger, or start a new file",
        )


def _named(plan: Plan) -> tuple[dict[str, Any], str]:
    """Return the dict form of a plan as a ledger names it, not resumed, and its fingerprint."""
    plan = plan.replace(world_size=plan.world_size)
    return dict_of(plan), plan.fingerprint


def check_continued(plan: Plan, named: Mapping[str, Any], place: Resume) -> None:
    """Raise `IndexPlanError` unless a run that one plan read to a place can continue with another.

    `named` is the dict form of the one before.
    """
    if plan.order.to_dict() == named["order"] and plan.sub_epochs == named["sub_epochs"]:
        return
    saved = Cursor(**place._asdict(), order=named["order"], sub_epochs=named["sub_epochs"])
    try:
        plan.resume(saved)
    except IndexPlanError as error:
        rule = "one that continues the ledger's run"
        raise invalid("plan", rule, f"another: {error}", OTHER) from error
