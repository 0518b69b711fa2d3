"""Plan files: builds, verification and reads, and other ways to keep an order."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks.render.page import Block
from benchmarks.render.writer import Figure, number, section, tabular

READ = "a random read of 256, warm"
NODE_READS = "read from disk for 8 ranks of 4096, cold cache"
PEERS = {  # what: how it is called, and whether it has checks, many builders, any world size
    "plan": ("indexplan, plan directory, order generated", "yes", "yes", "yes"),
    "export": ("indexplan.export, a .npy for each of 8 ranks, generated", "no", "yes", "no"),
    "npy": ("np.save of int64, np.load(mmap_mode)", "no", "no", "yes"),
    "safetensors": ("safetensors, uint32, safe_open", "no", "no", "yes"),
    "pickle": ("pickle of a list", "no", "no", "yes"),
    "none": ("no file: indexplan.Shuffle computes it", "-", "-", "yes"),
}
Data = dict[str, Any]


def _of(part: Callable[[Data], float | None]) -> Callable[[Data], float | None]:
    """Return a figure's measure: of the plan files in what a run found."""
    return lambda data: part(data["plan_files"])


def _against_dd(found: Data) -> float:
    built = statistics.median(build["seconds"] for build in found["builds"])
    return statistics.median(found["dd_seconds"]) / built


def _verified(found: Data) -> float:
    seconds = statistics.median(run["cpu_seconds"] for run in found["verify_one"])
    return statistics.median(found["dd_seconds"]) / seconds


def _read(found: Data) -> float:
    plan, npy = (found["peers"][kind]["open"]["us"] for kind in ("plan", "npy"))
    return float(plan / npy)


def _node_reads(found: Data) -> float | None:
    # bytes that did not come from a disk cannot be counted, and pages that stay are not cold
    node = found["node"]
    cold = node["read_bytes"] and not node["resident_pages"]
    return node["read_bytes"] / node["useful_bytes"] if cold else None


def _growth(data: Data) -> float:
    found = data["plan_files"]
    grown = max(build["peak_bytes"] for build in [*found["builds"], found["small"]])
    return float(grown / data["machine"]["cores"] / 2**20)


FIGURES = (
    Figure("a build against dd", 0.8, "of its speed", _of(_against_dd), least=True),
    Figure("verify on one core, against dd", 0.8, "of its speed", _of(_verified), least=True),
    Figure("a random read of 256, warm, by np.load's", 2, "times", _of(_read)),
    Figure(NODE_READS, 2.5, "bytes per useful byte", _of(_node_reads)),
    Figure("growth of a build per core", 64, "MiB", _growth),
)


def measurements(data: Data) -> list[Block]:
    """Return the table of what the figures come from."""
    node, mb = data["node"], data["num_bytes"] / 1e6
    rows = []
    for what, seconds in {
        "build, all cores": [build["seconds"] for build in data["builds"]],
        "dd conv=fsync": data["dd_seconds"],
        "verify, one core": [run["seconds"] for run in data["verify_one"]],
        "verify, one core, its CPU time": [run["cpu_seconds"] for run in data["verify_one"]],
        "verify, all cores": [run["seconds"] for run in data["verify_all"]],
    }.items():
        rows.append([what, f"{_each(seconds)} s; {_each([mb / each for each in seconds])} MB/s"])
    rate = data["generate"]["indices_per_second"]
    rows.append(["bytes and hashes alone, no disk", f"{number(rate / 1e6)} M indices/s of CPU"])
    rows += [[f"{READ}, `{name}`", f"{number(us)} us"] for name, us in data["read"].items()]
    rows += [
        ["a node's step of 8 batches of 256, cold cache", f"{number(node['step_us'])} us"],
        [NODE_READS, f"{node['read_bytes']:,} bytes, of which {node['useful_bytes']:,} useful"],
    ]
    for n, builds in ((data["n"], data["builds"]), (data["small"]["n"], [data["small"]])):
        grown = _each([build["peak_bytes"] / 2**20 for build in builds])
        rows.append([f"growth of a build of {n:,} indices, all cores", f"{grown} MiB"])
    return tabular("what | result", rows, "l")


def alternatives(data: Data) -> list[Block]:
    """Return the table of other ways to keep an order."""
    peers = data["peers"]
    header = "what | bytes per index | s to write | ms to open | MB held | us per read"
    words = (
        f"One order of {peers['n']:,} indices; who does not generate it gets it in memory and only "
        "writes it. A read is 256 neighbours, as a new array. Held is how much a reader grows as "
        "it opens the file."
    )
    return [
        words,
        *tabular(
            f"{header} | checksums | many builders | any world size",
            [_peer_row(kind, peers[kind], peers["n"]) for kind in PEERS],
            "lrrrrrl",
        ),
    ]


def _each(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)


def _peer_row(kind: str, data: Data, n: int) -> list[str]:
    title, *facts = PEERS[kind]
    written, opened = data["write"], data["open"]
    return [
        title,
        number(written["num_bytes"] / n) if written else "0",
        number(written["seconds"]) if written else "0",
        number(opened["seconds"] * 1e3),
        number(max(0, opened["held_bytes"]) / 1e6),
        number(opened["us"]),
        *facts,
    ]


WORDS = (
    "A plan of {n:,} indices, {num_bytes:,} bytes. Builds and dd, which copies zeros, take turns; "
    "both begin with an idle disk and end with a synced one. Reads and verification are from the "
    "page cache, but the node's, which begins with no page of the plan in it, by mincore."
)


def blocks(data: Data) -> list[Block]:
    """Return the page's blocks."""
    found = data["plan_files"]
    words = WORDS.format(n=found["n"], num_bytes=found["num_bytes"])
    return [
        *section("Measurements", words, measurements(found)),
        *section("Alternatives", "", alternatives(found)),
    ]
