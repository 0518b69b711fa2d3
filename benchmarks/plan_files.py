"""Measure plan files, and write docs/plan-file-measured.md: `python -m benchmarks.plan_files`.

Takes some minutes and 9 GB of disk, below `--folder` (the system's temporary folder), which is left
as it was. `--quick` does the same with small sizes in less than 20 seconds, to see that all outputs
are right; its timings mean nothing, so it writes no report unless `--output` names one.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import indexplan
from benchmarks.measure.plan_files import ROOT, run_fresh

READ = "a random read of 256, warm"
NODE_READS = "read from disk for 8 ranks of 4096, cold cache"
REPORT = ROOT / "docs" / "plan-file-measured.md"
FORMAT = ROOT / "docs" / "plan-file.md"
PEERS = {  # what: how it is called, and whether it has checks, many builders, any world size
    "plan": ("indexplan, plan directory, order generated", "yes", "yes", "yes"),
    "export": ("indexplan.export, a .npy for each of 8 ranks, generated", "no", "yes", "no"),
    "npy": ("np.save of int64, np.load(mmap_mode)", "no", "no", "yes"),
    "safetensors": ("safetensors, uint32, safe_open", "no", "no", "yes"),
    "pickle": ("pickle of a list", "no", "no", "yes"),
    "none": ("no file: indexplan.Shuffle computes it", "-", "-", "yes"),
}


class Figure(NamedTuple):
    """A figure to reach: `sign` says whether at least or at most."""

    name: str
    sign: str
    target: float
    value: float | None
    unit: str

    @property
    def reached(self) -> bool | None:
        """Whether it is reached; None where it could not be measured."""
        if self.value is None:
            return None
        return self.value >= self.target if self.sign == ">=" else self.value <= self.target


def write_zeros(path: Path, num_bytes: int) -> float:
    """Return the seconds that dd takes to write and sync as many bytes as a build writes."""
    command = ["dd", "if=/dev/zero", f"of={path}", "bs=4M", "conv=fsync", "status=none"]
    command += ["iflag=count_bytes", f"count={num_bytes}"]
    os.sync()
    start = perf_counter()
    subprocess.run(command, check=True)
    seconds = perf_counter() - start
    assert path.stat().st_size == num_bytes
    path.unlink()
    os.sync()
    return seconds


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Measure everything, in a folder that is empty before."""
    n, few, peers, rounds = (
        (3_000_000, 300_000, 300_000, 1) if quick else (10**9, 10**8, 3 * 10**7, 3)
    )
    path = str(folder / "a.plan")
    small = run_fresh("build", few, f"{path}.few")
    num_bytes = 4 * n + 128 * -(-n // 2**26)
    dds, builds = [], []
    for _ in range(rounds):
        dds.append(write_zeros(folder / "zeros", num_bytes))
        shutil.rmtree(path, ignore_errors=True)
        os.sync()
        builds.append(run_fresh("build", n, path))
        assert builds[-1]["num_bytes"] == num_bytes
    result: dict[str, Any] = {
        "n": n,
        "num_bytes": num_bytes,
        "dd_seconds": dds,
        "builds": builds,
        "small": {"n": few, **small},
        "generate": run_fresh("generate", n, cores=1),
        "verify_one": [run_fresh("verify", path, cores=1) for _ in range(min(2, rounds))],
        "verify_all": [run_fresh("verify", path) for _ in range(min(2, rounds))],
        "read": run_fresh("read", path),
        "node": run_fresh("node", path),
    }
    shutil.rmtree(path)
    result["peers"] = {"n": peers}
    for kind in PEERS:
        place = str(folder / kind)
        written = run_fresh("write_peer", kind, peers, place) if kind != "none" else {}
        result["peers"][kind] = {
            "write": written,
            "open": run_fresh("open_peer", kind, peers, place),
        }
    return result


def figures(data: dict[str, Any]) -> list[Figure]:
    """Return what was to be reached, and what was."""
    cores = len(os.sched_getaffinity(0))
    dd = statistics.median(data["dd_seconds"])
    built = statistics.median(build["seconds"] for build in data["builds"])
    verified = statistics.median(run["cpu_seconds"] for run in data["verify_one"])
    rate = data["generate"]["indices_per_second"] / 1e6
    node = data["node"]
    # bytes that did not come from a disk cannot be counted, and pages that stay are not cold
    cold = node["read_bytes"] and not node["resident_pages"]
    read = node["read_bytes"] / node["useful_bytes"] if cold else None
    grown = max(build["peak_bytes"] for build in [*data["builds"], data["small"]])
    return [
        Figure("a build against dd", ">=", 0.8, dd / built, "of its speed"),
        Figure("bytes and hashes alone, no disk", ">=", 350, rate, "M indices/s of CPU"),
        Figure("verify on one core", ">=", 0.8, data["num_bytes"] / verified / 1e9, "GB/s of CPU"),
        Figure(f"{READ}, `order.take`", "<=", 5, data["read"]["order.take"], "us"),
        Figure(NODE_READS, "<=", 2.5, read, "bytes per useful byte"),
        Figure("growth of a build per core", "<=", 64, grown / cores / 2**20, "MiB"),
    ]


def table(header: str, rows: list[list[str]]) -> list[str]:
    """Return the lines of a table; the header's cells are separated by |."""
    lines = [f"| {header} |", "|" + " --- |" * len(header.split("|"))]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def number(value: float) -> str:
    """Write a number with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def environment(data: dict[str, Any]) -> list[str]:
    """Say where, when and with what the run was."""
    infos = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(": ")[2] for line in infos if line.startswith("model name")), "?")
    cores = len(os.sched_getaffinity(0))
    names = [f"{name} {version(name)}" for name in ("numpy", "numba", "safetensors")]
    names = [f"indexplan {indexplan.__version__}", *names, f"Python {platform.python_version()}"]
    shared = "The machine is shared: trust ratios more than times."
    return [
        f"- Machine: {cpu}, {cores} cores, {platform.system()}. {shared}",
        f"- Load average at the start: {data['load']:.2f}.",
        f"- Versions: {', '.join(names)}.",
        f"- Date: {dt.datetime.now(dt.timezone.utc).date()}.",
        "- Command: `python -m benchmarks.plan_files`, after `pip install -e '.[bench]'`.",
        "",
    ]


def reached(data: dict[str, Any]) -> list[str]:
    """Return the table of figures."""
    words = {True: "yes", False: "**no**", None: "not measured"}
    rows = []
    for figure in figures(data):
        found = "-" if figure.value is None else f"{number(figure.value)} {figure.unit}"
        target = f"{figure.sign} {figure.target:g} {figure.unit}"
        rows.append([figure.name, target, found, words[figure.reached]])
    return table("figure | target | measured | reached", rows)


def measurements(data: dict[str, Any]) -> list[str]:
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
    rows += [[f"{READ}, `{name}`", f"{number(us)} us"] for name, us in data["read"].items()]
    rows += [
        ["a node's step of 8 batches of 256, cold cache", f"{number(node['step_us'])} us"],
        [NODE_READS, f"{node['read_bytes']:,} bytes, of which {node['useful_bytes']:,} useful"],
    ]
    for n, builds in ((data["n"], data["builds"]), (data["small"]["n"], [data["small"]])):
        grown = _each([build["peak_bytes"] / 2**20 for build in builds])
        rows.append([f"growth of a build of {n:,} indices, all cores", f"{grown} MiB"])
    return table("what | result", rows)


def render(data: dict[str, Any], *, quick: bool) -> str:
    """Return the report."""
    lines = [
        "# Plan files, measured",
        "",
        "Generated by the command below; do not edit. Outputs are verified after timing.",
        "",
        *(["**A quick run, on small sizes: the timings mean nothing.**", ""] * quick),
        *environment(data),
        "## Figures",
        "",
        *reached(data),
        "## Measurements",
        "",
        f"A plan of {data['n']:,} indices, {data['num_bytes']:,} bytes. Builds and dd, which",
        "copies zeros, take turns; both begin with an idle disk and end with a synced one. Reads",
        "and verification are from the page cache, but for the node's, which begins with no page",
        "of the plan in it, by mincore.",
        "",
        *measurements(data),
        "## Alternatives",
        "",
        *alternatives(data),
    ]
    return "\n".join(lines)


def alternatives(data: dict[str, Any]) -> list[str]:
    """Return the table of other ways to keep an order."""
    peers = data["peers"]
    header = "what | bytes per index | s to write | ms to open | MB held | us per read"
    return [
        f"One order of {peers['n']:,} indices; those that do not generate it are given it in",
        "memory, and only write it. A read is of 256 neighbours, as an array of its own. Held is",
        "what a reader grows by as it opens the file.",
        "",
        *table(
            f"{header} | checksums | many builders | any world size",
            [_peer_row(kind, peers[kind], peers["n"]) for kind in PEERS],
        ),
    ]


def refresh(page: Path, data: dict[str, Any]) -> None:
    """Put the table of alternatives into the page that describes the format."""
    before, start, rest = page.read_text().partition("<!-- alternatives -->\n")
    _, stop, after = rest.partition("<!-- /alternatives -->\n")
    assert start
    assert stop
    page.write_text("".join([before, start, "\n".join(alternatives(data)), stop, after]))


def _each(values: list[float]) -> str:
    return ", ".join(number(value) for value in values)


def _peer_row(kind: str, data: dict[str, Any], n: int) -> list[str]:
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


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plan_files", description=(__doc__ or "").partition(":")[0]
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: outputs, not figures")
    parser.add_argument(
        "--folder", type=Path, help="where to build plans; default: a temporary one"
    )
    parser.add_argument("--output", type=Path, help=f"the report; default: docs/{REPORT.name}")
    options = parser.parse_args()
    needed = 10**8 if options.quick else 9 * 10**9
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if (free := shutil.disk_usage(folder).free) < needed:
            print(f"needs {needed:,} bytes of disk; {free:,} are free; name another with --folder")
            return 1
        load = os.getloadavg()[0]
        data = {"load": load, **measure(Path(folder), quick=options.quick)}
    text = render(data, quick=options.quick)  # also where it goes nowhere: it must not fail
    if output := options.output or (None if options.quick else REPORT):
        output.write_text(text)
    if not options.quick:
        refresh(FORMAT, data)
    if options.quick:
        print("all outputs are right; the timings of a quick run mean nothing")
        return 0
    for f in figures(data):
        verdict = {True: "reached", False: "missed", None: "-"}[f.reached]
        print(f"{verdict:8}{f.name}: {f.value} {f.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
