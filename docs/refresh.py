"""Draw the pictures of the documentation, and bring README's `indexplan --help` up to date.

    python docs/refresh.py [FOLDER]

Writes docs/images/plan-*.png and README.md of this project, or of the copy in FOLDER. Needs
`pip install -e '.[cli]'`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import indexplan as ip
import indexplan.plot

ROOT = Path(__file__).parents[1]
HELP = re.compile(r"(<!-- help -->\n```text\n).*?(```\n)", re.DOTALL)

SMALL = ip.Plan(ip.Shuffle(103, seed=1), world_size=4, batch_size=4)
RESIZING = [
    ip.Phase(at=0, size=64, parameters={"resolution": 128}),
    ip.Phase(at=(2, 0), size=32, parameters={"resolution": 192}),
    ip.Phase(at=(4, 0), size=16, parameters={"resolution": 256}),
]


def in_blocks(window: int) -> ip.Plan:
    """Return a plan that reads shards of 1,000 samples, `window` of them at a time."""
    order = ip.BlockShuffle(100_000, block_size=1000, window=window)
    return ip.Plan(order, world_size=4, batch_size=64)


def pictures() -> dict[str, Figure]:
    """Return every picture of the documentation, by the name of its file."""
    resizing = ip.Plan(ip.Shuffle(100_000), world_size=8, batch_size=RESIZING, sub_epochs=4)
    return {
        "plan-reading": ip.plot.reading(SMALL),
        "plan-mixing-1": ip.plot.mixing(in_blocks(1)),
        "plan-mixing-16": ip.plot.mixing(in_blocks(16)),
        "plan-batch-sizes": ip.plot.batch_sizes(SMALL),
        "plan-schedule": ip.plot.schedule(resizing),
    }


def draw(folder: Path) -> None:
    """Write the pictures to a folder; those that are there are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as new:
        for name, figure in pictures().items():
            ip.plot.save(figure, Path(new) / f"{name}.png")
            (Path(new) / f"{name}.png").replace(folder / f"{name}.png")


def help_text() -> str:
    """Return what `indexplan --help` prints on a terminal of 80 columns."""
    command = [sys.executable, "-m", "indexplan", "--help"]
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(  # noqa: S603 (our own command)
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def main(root: Path) -> None:
    """Refresh the documentation of the project in a folder."""
    draw(root / "docs" / "images")
    readme = root / "README.md"
    text = readme.read_text()
    readme.write_text(HELP.sub(lambda found: found[1] + help_text() + found[2], text))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
