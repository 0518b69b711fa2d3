"""Draw the pictures of the documentation, and bring its `indexplan --help` up to date.

    python docs/refresh.py [FOLDER]

Writes docs/images/plan-*.png, by the commands of docs/pictures.md, and the block in
docs/command-line.md, of this project or of the copy in FOLDER. Needs
`pip install -e '.[cli,plot]'`.
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
    page = root / "docs" / "command-line.md"
    text = page.read_text()
    page.write_text(HELP.sub(lambda found: found[1] + help_text() + found[2], text))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
