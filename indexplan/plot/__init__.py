"""Pictures of a plan: each function returns a matplotlib Figure, drawn without a display.

They need matplotlib, which the extra `plot` installs. Large plans are sampled, so
that any size takes seconds; the figure says how much was looked at.

Examples
--------
>>> import indexplan as ip
>>> plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=5)
>>> ip.plot.reading(plan).savefig("reading.svg")
"""

from indexplan.plot.life_figure import life
from indexplan.plot.mixing_figure import mixing
from indexplan.plot.reading_figure import reading

__all__ = ["life", "mixing", "reading"]
