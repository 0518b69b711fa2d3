"""What `bench` reports: rows of times, and a table of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from indexplan.answers import Answer, table
from indexplan.errors import counted
from indexplan.plan.plan import Plan
from indexplan.version import __version__


@dataclass(frozen=True)
class Row:
    """One measurement of `bench`.

    Attributes
    ----------
    key, name : str
        Its name, for programs and for people.
    seconds : float or None
        The median time of one answer; None if it was not measured, and `note` says why.
    num_indices : int
        Indices in one answer; 0 if an answer has none.
    peak_bytes : int or None
        The highest memory use, in bytes, above what the process had before; None if not measured.
    note : str
        Why there is no time, or a comparison.
    """

    key: str
    name: str
    seconds: float | None
    num_indices: int = 0
    peak_bytes: int | None = None
    note: str = ""

    @property
    def ns_per_index(self) -> float | None:
        """Nanoseconds per index."""
        if self.seconds is None or not self.num_indices:
            return None
        return self.seconds / self.num_indices * 1e9


@dataclass(frozen=True)
class Bench(Answer):
    """What `bench` measured; printed, it is a table.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=1, batch_size=8)
    >>> row = Row("share", "a share", seconds=0.002, num_indices=1000)
    >>> ip.types.Bench(plan, num_cores=2, free_bytes=None, rows=(row,)).rows[0].ns_per_index
    2000.0
    """

    plan: Plan
    num_cores: int
    free_bytes: int | None
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types."""
        return {
            "plan": self.plan.to_dict(),
            "version": __version__,
            "num_cores": self.num_cores,
            "free_bytes": self.free_bytes,
            "rows": [{**asdict(row), "ns_per_index": row.ns_per_index} for row in self.rows],
        }

    def __str__(self) -> str:
        """Return what was measured where, and a table of the rows."""
        free = "" if self.free_bytes is None else f", {self.free_bytes / 1e9:.1f} GB free"
        size = counted(self.plan.order.num_samples, "sample")
        ranks = counted(self.plan.world_size or 1, "rank")
        lines = [f"{size}, {ranks}; {counted(self.num_cores, 'core')}{free}", ""]
        rows = [("", "time", "per index", "million/s", "memory")]
        for row in self.rows:
            if row.seconds is None:  # its note below says why
                continue
            each = row.ns_per_index
            rows.append(
                (
                    row.name,
                    show_time(row.seconds),
                    "" if each is None else f"{each:,.{2 * (each < 100)}f} ns",
                    "" if each is None else f"{1000 / each:,.3g}",
                    show_memory(row.peak_bytes),
                )
            )
        lines += table(rows)
        lines += [f"{row.name}: {row.note}" for row in self.rows if row.note]
        return "\n".join(line.rstrip() for line in lines)


def show_time(seconds: float | None) -> str:
    """Write seconds in a suitable unit; "" for None."""
    if seconds is None:
        return ""
    if seconds >= 1:
        return f"{seconds:,.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def show_memory(num_bytes: int | None) -> str:
    """Write bytes in decimal units; "" for None."""
    if num_bytes is None:
        return ""
    return f"{num_bytes / 1e9:,.1f} GB" if num_bytes >= 1e9 else f"{num_bytes / 1e6:,.1f} MB"
