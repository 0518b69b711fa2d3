"""Draw the pictures of the documentation, and bring README's `indexplan --help` up to date.

    python docs/refresh.py [FOLDER]

Writes docs/images/plan-*.png, by the commands of docs/pictures.md, and README.md of this project,
or of the copy in FOLDER. Needs `pip install -e '.[cli]'`.
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
HELP = re.compile(r"(<!-- help -->\n```text\n).*?(```\n)", re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """Return the words of every `indexplan` command in the shell blocks of a page."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("indexplan ")]


def draw(folder: Path) -> None:
    """Write the pictures to a folder, as docs/pictures.md does; those there are replaced."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory(dir=folder) as new, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(new)  # contextlib.chdir needs Python 3.11
        try:
            for words in commands(ROOT / "docs" / "pictures.md"):
                if words[0] in ("build", "plot") and main_command(words) != 0:
                    raise SystemExit(1)
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
    readme = root / "README.md"
    text = readme.read_text()
    readme.write_text(HELP.sub(lambda found: found[1] + help_text() + found[2], text))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
