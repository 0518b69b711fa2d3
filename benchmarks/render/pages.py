"""The pages of results, by their names."""

from __future__ import annotations

from benchmarks.render.bins import BINS
from benchmarks.render.loading import LOADING
from benchmarks.render.orders import ORDERS
from benchmarks.render.plan_files import PLAN_FILES
from benchmarks.render.planning import PLANNING
from benchmarks.render.quality import QUALITY
from benchmarks.render.shards import SHARDS
from benchmarks.render.timings import TIMINGS

PAGES = {
    page.name: page
    for page in (PLANNING, TIMINGS, QUALITY, LOADING, ORDERS, BINS, SHARDS, PLAN_FILES)
}
