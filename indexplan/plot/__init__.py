"""Pictures of a plan: each function returns a matplotlib Figure, drawn without a display.

They need matplotlib, which `pip install 'indexplan[cli]'` installs. Large plans are sampled, so
that any size takes seconds; the figure says how much was looked at.

Examples
--------
>>> import indexplan as ip
>>> plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=5)
>>> ip.plot.save(ip.plot.reading(plan), "reading.svg")
"""

from indexplan.plot.coverage import coverage
from indexplan.plot.drawing import save
from indexplan.plot.draws import draws
from indexplan.plot.mixing import mixing
from indexplan.plot.padding import padding
from indexplan.plot.reading import reading
from indexplan.plot.schedule import schedule
from indexplan.plot.sizes import batch_sizes
from indexplan.plot.traffic import traffic
from indexplan.plot.work import work

__all__ = [
    "batch_sizes",
    "coverage",
    "draws",
    "mixing",
    "padding",
    "reading",
    "save",
    "schedule",
    "traffic",
    "work",
]
