r"""Lengths that bins are made of: drawn ones, and real ones that nobody tuned for.

The real ones are of text and code that packages happen to ship, and lie in real_lengths.npz as
histograms: above, the lengths; below, how many have each. They were counted once, in the wheels of
transformers 5.23.0, sympy 1.14.0, homeassistant 2024.3.3, botocore 1.44.5 and bfcl-eval 2026.3.23,
and in Debian's linux-doc-6.1 6.1.192-2 and dict-gcide 0.48.5+nmu2. A token is a word or a mark
(`\w+|[^\w\s]`), close enough to what tokenizers do for the shape of a distribution.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
NUM = 10**6
HISTOGRAMS = Path(__file__).with_name("real_lengths.npz")


def chats(rng: np.random.Generator, n: int = NUM) -> Int64:
    """Log-normal, mean 366, cut at 4,096 tokens."""
    drawn = rng.lognormal(np.log(366) - 0.5, 1, n)
    return np.clip(np.round(drawn), 1, 4096).astype(np.int64)


def documents(rng: np.random.Generator, n: int = NUM) -> Int64:
    """Log-normal, with a heavy tail, cut at 8,192 tokens."""
    body, tail = rng.lognormal(6.3, 1.1, n), 800 * (1 + rng.pareto(1.2, n))
    drawn = np.where(rng.random(n) < 0.9, body, tail)
    return np.clip(np.round(drawn), 1, 8192).astype(np.int64)


def speech(rng: np.random.Generator, n: int = NUM) -> Int64:
    """Two humps, in frames of 10 ms: commands, and sentences of up to 20 s."""
    sentences, commands = rng.normal(1300, 250, n), rng.normal(350, 120, n)
    drawn = np.where(rng.random(n) < 0.7, sentences, commands)
    return np.clip(np.round(drawn), 50, 2000).astype(np.int64)


DRAWN = {"chats": chats, "documents": documents, "speech": speech}
REAL = {
    "code files": "Tokens of Python files: of an application with many, and of a library",
    "functions": "Tokens of functions, docstrings and all",
    "API documentation": (
        "Tokens of what a cloud's interface says of each of its operations and fields"
    ),
    "tool calls": (
        "Tokens of prompts to call functions: of all turns, and of what the functions are"
    ),
    "kernel documentation": (
        "Tokens of the pages of documentation of an operating system's kernel"
    ),
    "dictionary": "Tokens of the articles of an English dictionary",
}


def real(kind: str) -> Int64:
    """Return the real lengths of a kind, int64, rising."""
    with np.load(HISTOGRAMS, allow_pickle=False) as kept:
        lengths, counts = kept[kind]
    return np.repeat(lengths.astype(np.int64), counts)
