"""Count the phrases that give a translation away: `python -m tests.prose [FOLDER]`.

Of hand-written Markdown, docstrings of what users meet, and the help of the command line; code is
left out. It also counts how often a text says "you". With the folder of another checkout one sees
what a change of the pages came to.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TELLS = {
    "goes on": r"\b(go|goes|going|went|gone) on\b",
    "dealt": r"\bdeal(s|t|ing)?\b",
    "beside": r"\bbeside\b",
    "anew": r"\banew\b",
    "what to know": r"\bwhat (there is )?to know\b",
    "lies in": r"\b(lie|lies|lay|lying) (in|on|at|beside|there)\b",
    "for ever": r"\bfor ever\b",
    "so that none": r"\bso that (none|no)\b",
    "of which": r"\bof which\b",
    "tells": r"\btells?\b",
    "is of": r"\b(is|are) of (the|its|a|that|one)\b",
    "not as described": r"\bnot as described\b",
    "is wanted": r"\b(is|are) wanted\b",
    "of its own": r"\bof (its|their|his|your) own\b",
    ", as ...": r", as (it|they|the|a|its|their|each|no|that|this|there)\b",
    ", which is": r", which (is|are|has|have)\b",
}
YOU = r"\byou(r|rs|rself)?\b"
PUBLIC = ("indexplan", "adapters")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`|^ {8,}\S[^\n]*$|<!--.*?-->", re.DOTALL | re.MULTILINE)


def pages(root: Path) -> Iterator[str]:
    """Yield the text of each page that people write, without code and tables of figures."""
    for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]:
        yield CODE.sub(" ", path.read_text())


def docstrings(root: Path) -> Iterator[str]:
    """Yield the docstrings of public modules, classes and functions, without their examples."""
    for folder in PUBLIC:
        for path in (root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    continue
                if not getattr(node, "name", "").startswith("_"):
                    text = re.sub(r"(?m)^ *(>>>|\.\.\.).*$", " ", ast.get_docstring(node) or "")
                    yield re.sub(r"`[^`\n]+`", " ", text)


def helps(root: Path) -> Iterator[str]:
    """Yield the help of each verb and the list of orders, without usage lines and examples."""
    code = """
from indexplan.cli import main as command
from indexplan.cli.main import parser_of_verbs
parser, verbs = parser_of_verbs()
print(parser.format_help(), *(each.format_help() for each in verbs.choices.values()), sep="\\f")
print("\\f")
command(["orders"])
"""
    paths = os.pathsep.join([str(root), str(root / "adapters")])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=root, env=environment, check=True, capture_output=True, text=True
    )
    for text in done.stdout.split("\f"):
        said = re.sub(r"(?ms)^usage:.*?\n\n|^examples?:\n(  .*\n)+", " ", text)
        yield re.sub(r"`[^`\n]+`|'[^'\n]+'", " ", said)


def counts(texts: Iterator[str]) -> tuple[int, Counter[str]]:
    """Return the number of words, and how often each tell, and "you", occurs."""
    words, found = 0, Counter[str]()
    for text in texts:
        words += len(text.split())
        for name, pattern in (*TELLS.items(), ("you", YOU)):
            found[name] += len(re.findall(pattern, text, re.IGNORECASE))
    return words, found


def main(root: Path) -> None:
    """Print a table."""
    texts = {"pages": pages(root), "docstrings": docstrings(root), "help": helps(root)}
    kinds = {name: counts(each) for name, each in texts.items()}
    rows = [("", *kinds), ("words", *(f"{words:,}" for words, _ in kinds.values()))]
    rows += [(name, *(f"{found[name]:,}" for _, found in kinds.values())) for name in TELLS]
    rates = {
        "of these": [(found.total() - found["you"]) / words for words, found in kinds.values()],
        "you": [found["you"] / words for words, found in kinds.values()],
    }
    for name, each in rates.items():
        rows.append((f"{name}, in 1,000 words", *(f"{1000 * rate:.1f}" for rate in each)))
    for name, *cells in rows:
        sys.stdout.write(f"{name:26}" + "".join(f"{cell:>12}" for cell in cells) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[1])
