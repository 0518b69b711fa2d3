"""Run all benchmarks and write docs/benchmarks.md: `python -m benchmarks.report`.

`--quick` runs the same code on small sizes in less than a minute, to see that all outputs are
right; its timings mean nothing, so it writes no report unless `--output` names one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import cold
from benchmarks.figures import FIGURES, Results
from benchmarks.plot import plot
from benchmarks.tables import render

REPORT = cold.ROOT / "docs" / "benchmarks.md"


def run_pytest(path: Path, *, quick: bool) -> None:
    """Run the pytest benchmarks, which write to `path`; raise if an output is wrong."""
    command = [sys.executable, "-m", "pytest", "benchmarks", "-q", f"--benchmark-json={path}"]
    command += ["--benchmark-columns=min,median,rounds", "--benchmark-sort=name"]
    subprocess.run([*command, *(["--quick"] if quick else [])], cwd=cold.ROOT, check=True)


def run(*, quick: bool) -> dict[str, object]:
    """Run everything and return it as JSON types."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benchmarks.json"
        run_pytest(path, quick=quick)
        measured = json.loads(path.read_text())
    return {
        "load": load,
        "quick": quick,
        "numba": importlib.metadata.version("numba"),
        "pytest": measured,
        "cold": cold.measure(quick=quick),
    }


def main() -> int:
    """Run the command line; 1 if an output was wrong, whatever the timings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: outputs, not figures")
    parser.add_argument("--json", type=Path, help="where to keep the measurements")
    parser.add_argument("--render", type=Path, help="render measurements kept before; run nothing")
    parser.add_argument("--output", type=Path, help=f"the report; default: {REPORT.name} in docs")
    options = parser.parse_args()
    try:
        data = (
            json.loads(options.render.read_text()) if options.render else run(quick=options.quick)
        )
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(data, indent=1))
    results = Results(data)
    output = options.output or (None if data["quick"] else REPORT)
    text = render(data, results)  # also where it goes nowhere: it must not fail
    if output:
        picture = output.parent / "images" / "cost_per_index.png"
        plot(results, picture)
        output.write_text(text)
    if data["quick"]:
        print("all outputs are right; the timings of a quick run mean nothing")
        return 0
    for figure in FIGURES:
        verdict = "reached" if figure.reached(results) else "missed"
        print(f"{verdict:8}{figure.name}: {figure.measure(results):.3g} {figure.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
