"""What a report of checks says: how much was looked at, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indexplan.answers import Answer

SHOWN = 8  # problems of a check that are printed


@dataclass(frozen=True)
class Check(Answer):
    """One check of a report: how much was looked at and what is wrong, or why it was skipped.

    Examples
    --------
    >>> import indexplan as ip
    >>> report = ip.verify(ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16))
    >>> report.checks[0]
    Check(name='sub-epochs tile the epoch', num_checked=1, problems=(), skipped='')
    """

    name: str
    num_checked: int
    problems: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def ok(self) -> bool:
        """Whether there were no problems."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON types."""
        return {**super().to_dict(), "ok": self.ok}

    def __str__(self) -> str:
        if self.skipped and self.ok:
            return f"--  {self.name}: not checked; {self.skipped}"
        lines = [f"{'ok ' if self.ok else 'BAD'} {self.name} ({self.num_checked:,})"]
        lines.extend(f"    {problem}" for problem in self.problems[:SHOWN])
        if len(self.problems) > SHOWN:
            lines.append(f"    and {len(self.problems) - SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class Report(Answer):
    """What `verify` or `testing.check_order` found, check by check.

    Examples
    --------
    >>> import indexplan as ip
    >>> print(ip.verify(ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)))
    ok  sub-epochs tile the epoch (1)
    ok  steps tile their sub-epoch (8)
    ok  ranks tile their step, within one unit (8)
    ok  locate is the inverse of batch (8)
    ok  every unit is accounted for (1,000)
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check that was made passed; `skipped` says why others were not made."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return {"ok": self.ok, **super().to_dict()}

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))
