"""The table of how random the orders are."""

from __future__ import annotations

from typing import Any

from benchmarks.measure.quality import noise
from benchmarks.render.page import Block
from benchmarks.render.views import IMAGES
from benchmarks.render.writer import power, tabular

WORDS = (
    "Each test against a random order, so 1 is right: the mean of {seeds} seeds, in bold where it "
    "is further from 1 than {seeds} seeds of NumPy's shuffle would be (4 standard deviations: "
    "{variance:.2f} and {xors:.4f})."
)
TESTS = {
    "label counts": (
        "half of the dataset, index < n/2, is labelled; the variance of the label's count in "
        "windows of 256, whose ideal is the hypergeometric one, nearly 64. 0 is too regular, much "
        "more than 1 comes in runs"
    ),
    "xor": "distinct values of `order[2i] ^ order[2i + 1]` over `2**16` pairs",
    "each once": "whether every index comes exactly once",
    "BlockShuffle": (
        "blocks of 4,096, 64 of them mixed; gives up even label counts by design, to keep shards "
        "together"
    ),
    "Streaming py1e": (
        "has the same purpose, but mixes blocks of 4,000,000 by default on one node: all of these "
        "datasets"
    ),
}


def blocks(found: dict[str, Any]) -> list[Block]:
    """Return the page's blocks."""
    data = found["quality"]
    bands = {key: noise(data, key) for key in ("variance", "xors")}

    def cells(row: dict[str, Any], key: str, digits: int) -> list[str]:
        texts = []
        for n in data["sizes"]:
            value = row[key][str(n)]
            text = f"{value:.{digits}f}"
            texts.append(text if abs(value - 1) <= bands[key] else f"**{text}**")
        return texts

    names = {2**20: "2**20"}
    sizes = [names.get(n, power(n)) for n in data["sizes"]]
    header = ["order", *(f"label counts, {n}" for n in sizes), *(f"xor, {n}" for n in sizes)]
    header += [f"each once, {n:,}" for n in data["awkward"]]
    rows = [
        (
            row["name"],
            *cells(row, "variance", 2),
            *cells(row, "xors", 4),
            *("yes" if row["bijection"][str(n)] else "**no**" for n in data["awkward"]),
        )
        for row in data["rows"]
    ]
    words = WORDS.format(seeds=data["seeds"], **bands)
    picture = f"![variance of label counts]({IMAGES}/quality.svg)"
    tables = tabular(" | ".join(header), rows) + tabular("name | means", TESTS.items(), "l")
    return [words, picture, *tables]
