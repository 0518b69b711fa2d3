"""Draw the pictures of the documentation, and bring its `indexplan --help` up to date.

    python docs/refresh.py [FOLDER]

Writes docs/images/plan-*.png, by the commands of docs/pictures.md, the first picture of README and
of the home page, and the block in docs/command-line.md, of this project or of the copy in FOLDER.
Needs `pip install -e '.[cli,plot]'`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import indexplan as ip
from indexplan.cli import main as main_command

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
HELP = re.compile(r"(<!-- help -->\n```text\n).*?(```\n)", re.DOTALL)


def run(page: Path) -> None:
    """Run a page's blocks of Python, and the `indexplan` commands of others that write files."""
    names: dict[str, object] = {}
    for kind, code in BLOCK.findall(page.read_text()):
        if kind == "python":
            exec(code, names)  # noqa: S102 (our own page)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words[:1] != ["indexplan"] or words[1] not in ("build", "plot"):
                continue
            if main_command(words[1:]) != 0:
                raise SystemExit(1)


def draw(folder: Path) -> None:
    """Write the pictures to a folder, as docs/pictures.md does; those there are replaced."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory(dir=folder) as new, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(new)  # contextlib.chdir needs Python 3.11
        try:
            run(ROOT / "docs" / "pictures.md")
            for picture in Path().glob("plan-*.png"):
                picture.replace(folder / picture.name)
        finally:
            os.chdir(before)


STYLE = """
svg { font: 17px system-ui, sans-serif }
.ground { fill: #ffffff } text { fill: #1f2328 } .word { fill: #59636e } .rule { fill: #9aa4af }
.order { fill: #e8ecf0 } .rank0 { fill: #b9d7fb } .rank1 { fill: #fbd9a5 } .rank2 { fill: #b4e3bd }
line { stroke: #c2273c; stroke-width: 2; stroke-dasharray: 6 4 } .stop { fill: #c2273c }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 } text { fill: #f0f6fc } .word { fill: #9ba5b0 }
  .order { fill: #2a313a }
  .rank0 { fill: #1d4f88 } .rank1 { fill: #7d4e12 } .rank2 { fill: #21663a }
  line { stroke: #ff8e98 } .stop { fill: #ff8e98 }
}
"""
CELL, LEFT, HIGH = 44, 150, 34


def first_picture() -> str:
    """Return a small plan as SVG: its order, a whole run on 2 ranks, and one that goes on with 3.

    Each cell is a sample that a run reads; its class is the rank, and its step is in `data-step`.
    """
    plan = ip.Plan(ip.Shuffle(13, seed=1), world_size=2, batch_size=2)
    rest = plan.replace(world_size=3).resume(plan.cursor(epoch=0, step=2))
    parts = [
        f'<rect class="ground" width="{LEFT + 13 * CELL + 16}" height="304" rx="8"/>',
        *_words(12, 46, "order of the", "samples"),
    ]
    parts += _cells(0, 34, "order", "", plan.order.take(0, 0, 13).tolist())
    rows = (("2 ranks,", "no stop", [plan] * 4), ("2 ranks,", "then 3", [plan, plan, rest]))
    for top, (first, second, plans) in zip((122, 228), rows, strict=True):
        parts += _words(12, top + 12, first, second)
        at = 0
        for step, running in enumerate(plans):
            start = at
            for rank in range(running.world_size):
                batch = running.batch(0, step=step, rank=rank).tolist()
                parts += _cells(at, top, f"rank{rank}", f' data-step="{step}"', batch)
                at += len(batch)
            middle = LEFT + (start + at) * CELL // 2
            parts.append(_text(middle, top - 11, f"step {step}", "word", middle=True))
            wide = (at - start) * CELL - 4
            box = f'x="{LEFT + start * CELL}" y="{top - 6}" width="{wide}" height="2"'
            parts.append(f'<rect class="rule" {box}/>')
    stop = LEFT + 7 * CELL - 2
    parts.append(f'<line x1="{stop}" x2="{stop}" y1="196" y2="292"/>')
    parts.append(_text(stop + 136, 290, "stopped; resumed on 3 ranks", "stop", middle=True))
    for rank in range(3):
        x = LEFT + rank * 2 * CELL
        parts.append(f'<rect class="rank{rank}" x="{x}" y="277" width="16" height="16" rx="3"/>')
        parts.append(_text(x + 22, 291, f"rank {rank}", "word"))
    size = f'viewBox="0 0 {LEFT + 13 * CELL + 16} 304"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _cells(at: int, top: int, kind: str, more: str, samples: list[int]) -> list[str]:
    """Return a row's cells from a position on, with a gap after the last one of a batch."""
    found = []
    for place, sample in enumerate(samples, at):
        wide = CELL - (4 if kind == "order" or place == at + len(samples) - 1 else 0)
        box = f'x="{LEFT + place * CELL}" y="{top}" width="{wide}" height="{HIGH}"'
        found.append(f'<rect class="{kind}"{more} {box}/>')
        found.append(_text(LEFT + place * CELL + CELL // 2 - 2, top + 23, sample, middle=True))
    return found


def _words(x: int, y: int, *lines: str) -> list[str]:
    """Return what a row shows, in two lines."""
    return [_text(x, y + 20 * number, line) for number, line in enumerate(lines)]


def _text(x: int, y: int, said: object, kind: str = "", middle: bool = False) -> str:
    named = f' class="{kind}"' if kind else ""
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x}" y="{y}"{named}{anchor}>{said}</text>'


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
    (root / "docs" / "images" / "stop-and-resume.svg").write_text(first_picture())
    page = root / "docs" / "command-line.md"
    text = page.read_text()
    page.write_text(HELP.sub(lambda found: found[1] + help_text() + found[2], text))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
