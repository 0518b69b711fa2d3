"""Plan files, and other ways to keep an order: the page."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import INSTALL, Column, Figure, Page, Table, number, times

BUILD, DD, VERIFY = "build, all cores", "dd conv=fsync", "verify, one core, its CPU time"
READ = "a random read of 256, warm"
NODE_READS = "read from disk for 8 ranks of 4096, cold cache"
PEERS = {  # what: whether it has checks, many builders, any world size
    "indexplan, plan directory, order generated": ("yes", "yes", "yes"),
    "indexplan.export, a .npy for each of 8 ranks, generated": ("no", "yes", "no"),
    "np.save of int64, np.load(mmap_mode)": ("no", "no", "yes"),
    "safetensors, uint32, safe_open": ("no", "no", "yes"),
    "pickle of a list": ("no", "no", "yes"),
    "no file: indexplan.Shuffle computes it": ("-", "-", "yes"),
}
PLAN, NPY, *_ = PEERS


def _each(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)


def result(row: Row, _: list[Row]) -> str:
    """Write what was measured, by its unit."""
    if "seconds" in row:
        rates = [row["num_bytes"] / 1e6 / seconds for seconds in row["seconds"]]
        return f"{_each(row['seconds'])} s; {_each(rates)} MB/s"
    if "indices_per_second" in row:
        return f"{number(row['indices_per_second'] / 1e6)} M indices/s of CPU"
    if "read_bytes" in row:
        return f"{row['read_bytes']:,} bytes, of which {row['useful_bytes']:,} useful"
    if "grown_bytes" in row:
        return f"{_each([each / 2**20 for each in row['grown_bytes']])} MiB"
    return f"{number(row['us'])} us"


def measurements(rows: list[Row]) -> list[str]:
    """Return the section of what the targets come from."""
    plan = kept.one(rows, "plan")
    words = (
        f"A plan of {plan['n']:,} indices, {plan['num_bytes']:,} bytes. Builds and dd, which "
        "copies zeros, take turns; both begin with an idle disk and end with a synced one. Reads "
        "and verification are from the page cache, but the node's, which begins with no page of "
        "the plan in it, by mincore."
    )
    columns = (Column(result, "result"),)
    found = Table("measurements", "Measurements", words, columns, (("what", "{case}"),), align="l")
    return found.blocks(rows)


def _fact(place: int) -> Callable[[Row, list[Row]], str]:
    return lambda row, _: PEERS[row["who"]][place]


ALTERNATIVES = Table(
    "alternatives",
    "Alternatives",
    "One order of 30,000,000 indices; who does not generate it gets it in memory and only writes "
    "it. A read is 256 neighbours, as a new array. Held is how much a reader grows as it opens the "
    "file.",
    (
        Column("bytes_per_index", "bytes per index"),
        Column("write_seconds", "s to write"),
        Column("open_seconds", "ms to open", times(1e3)),
        Column("held_bytes", "MB held", times(1e-6)),
        Column("us", "us per read"),
        Column(_fact(0), "checksums"),
        Column(_fact(1), "many builders"),
        Column(_fact(2), "any world size"),
    ),
    (("what", "{who}"),),
    align="lrrrrrl",
)


def _seconds(rows: list[Row], case: str) -> float:
    return statistics.median(kept.one(rows, "measurements", case=case)["seconds"])


def _read(rows: list[Row]) -> float:
    plan, npy = (kept.one(rows, "alternatives", who=who)["us"] for who in (PLAN, NPY))
    return float(plan / npy)


def _node_reads(rows: list[Row]) -> float | None:
    # bytes that did not come from a disk cannot be counted, and pages that stay are not cold
    node = kept.one(rows, "measurements", case=NODE_READS)
    cold = node["read_bytes"] and not node["resident_pages"]
    return float(node["read_bytes"] / node["useful_bytes"]) if cold else None


def _growth(rows: list[Row]) -> float:
    found = kept.of(rows, "measurements")
    grown = max(max(row["grown_bytes"]) for row in found if "grown_bytes" in row)
    return float(grown / kept.one(rows, "plan")["cores"] / 2**20)


PLAN_FILES = Page(
    "plan-files",
    "Builds and reads of plan files",
    "What it takes to build, verify and read a plan of a billion indices.",
    (measurements, ALTERNATIVES),
    (
        Figure(
            "a build against dd",
            0.8,
            "of its speed",
            lambda rows: _seconds(rows, DD) / _seconds(rows, BUILD),
            least=True,
        ),
        Figure(
            "verify on one core, against dd",
            0.8,
            "of its speed",
            lambda rows: _seconds(rows, DD) / _seconds(rows, VERIFY),
            least=True,
        ),
        Figure("a random read of 256, warm, by np.load's", 2, "times", _read),
        Figure(NODE_READS, 2.5, "bytes per useful byte", _node_reads),
        Figure("growth of a build per core", 64, "MiB", _growth),
    ),
    f"{INSTALL}\n",
    rivals=False,
)
