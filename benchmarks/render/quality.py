"""How random the orders are: the page."""

from __future__ import annotations

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import IMAGES, INSTALL, Page, means, table

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
COLUMNS = {"label counts": ("variance", 2), "xor": ("xors", 4)}
"""Their fields: a band of chance is under this name, the numbers under that of the column."""


def tests(rows: list[Row]) -> list[str]:
    """Return the tables of a run, with what no chance explains in bold."""
    found, chance = kept.of(rows, "quality"), kept.one(rows, "chance")
    titles = [name for name in found[0] if name.startswith(tuple(TESTS))]

    def cell(row: Row, title: str) -> str:
        if title.startswith("each once"):
            return "yes" if row[title] else "**no**"
        key, digits = COLUMNS[title.partition(",")[0]]
        text = f"{row[title]:.{digits}f}"
        return text if abs(row[title] - 1) <= chance[key] else f"**{text}**"

    lines = [(row["who"], *(cell(row, title) for title in titles)) for row in found]
    return [
        WORDS.format(**chance),
        f"![variance of label counts]({IMAGES}/quality.svg)",
        table(("order", *titles), lines),
        *means("", "", "name | means", TESTS),
    ]


QUALITY = Page(
    "quality",
    "Quality of the orders",
    "How random they are.",
    (tests,),
    install=f"{INSTALL}\n",
    rivals=False,
)
