"""What nodes download, compared with MosaicML Streaming's code: the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from benchmarks.measure.shards import BATCH, RANKS, SPREAD
from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import INSTALL, Column, Figure, Page, Table, less, means, more, number

OURS = "ShardShuffle"
NARROW = f"{OURS}, window 1"
SURE = 0.02
"""Downloads by which somebody is ahead, or variance: less is chance."""
MEASURED = {
    "a cell": "downloads / live shards of a node / different shards in a step",
    "downloads": (
        "all shards that a node needs in the epoch, each once and whole, summed over the nodes, "
        "by the dataset; after a resume by what was left"
    ),
    "live shards": "of the node that has most: between their first use and their last, at most",
    "different shards": "of a step, over all nodes, in the mean",
    "gone on": (
        "resumed in the middle of the epoch: on 4 nodes instead of 1, 1 instead of 4, 4 instead of "
        "16, 16 instead of 64"
    ),
    "nodes": f"{RANKS} ranks each; {BATCH} samples a rank and step",
    "uneven sizes": f"log-normal, with a sigma of {SPREAD}",
    "ShardShuffle": (
        "64 lanes, or four for each node where that is more; a stripe of 64 times the lanes; a "
        'window of 2; grid="stream" under carry; epoch 1'
    ),
    "Streaming": "its defaults: canonical nodes, blocks, and the partition",
    "the counter": "is the same for both; tests hold it against sets",
    "40 sub-epochs under drop": "read nothing where each has less than a step",
}
MIXED = (
    "Each shard holds one of ten labels. Variance is of label counts in global batches, by that of "
    "a full shuffle: 1 is as good as random, more is worse, less more even. Mixing more shards "
    "keeps more of them live."
)


def of_figure(rows: list[Row], how: str, who: str = OURS) -> Row:
    """Return what was found of ours in the case of the targets: 1e5 uneven shards, 16 nodes."""
    return kept.one(rows, "1e5 uneven shards", case="16 nodes", who=who, how=f", {how}")


def downloads(how: str, who: str = OURS) -> Callable[[list[Row]], float]:
    """Return a figure's measure: downloads."""
    return lambda rows: float(of_figure(rows, how, who)["times"])


def of(
    key: str, best: Callable[[Iterable[float]], float], who: str = OURS
) -> Callable[[list[Row]], float]:
    """Return a figure's measure: the worst over the plans that keep their lanes."""
    kinds = "drop", "pad", "carry", "carry, 40 sub-epochs"
    return lambda rows: best(of_figure(rows, how, who)[key] for how in kinds)


def _ahead(theirs: float, ours: float) -> bool:
    return ours - theirs > SURE + 1e-9  # kept rows have two digits after the point


COLUMNS = (
    Column("times", "downloads", "{:.2f}".format, _ahead),
    Column("live", "live shards of a node", "{:.0f}".format, less),
    Column("different", "different shards in a step", "{:.0f}".format, more),
)
CELL = Column(
    ("times", "live", "different"),
    "",
    lambda *found: (
        " / ".join(each.show(value) for each, value in zip(COLUMNS, found, strict=True))
        if found[1]
        else "reads nothing"
    ),
)


def _drop(row: Row) -> list[tuple[str, str]]:
    """Return what a shuffle of Streaming is compared with."""
    return [(OURS, f", drop{row.get('how', '')}")]


TABLES = [
    Table(
        title,
        title,
        "",
        (CELL,),
        (("who", "{who}{how}"),),
        across="case",
        place=title + ", {case}{how}",
        ours=_drop,
        is_ours=lambda name: name.startswith(OURS),
        compared=COLUMNS,
    )
    for title in (f"{num} {kind} shards" for num in ("1e3", "1e5") for kind in ("even", "uneven"))
]
MIXING = Table(
    "mixing",
    "Mixing",
    MIXED,
    (
        Column(
            "variance",
            "variance",
            number,
            lambda theirs, ours: theirs < ours - SURE and ours > 1 + SURE,
        ),
        Column("different", "different in a step", "{:.0f}".format),
        Column("live", "live of a node", "{:.0f}".format),
        Column("times", "downloads", "{:.2f}".format),
    ),
    (("shards", "{case}"), ("who", "{who}")),
    place="{case} uneven shards",
    ours=lambda _: [(f"{OURS}, window 2", "")],
    is_ours=lambda name: not name.startswith("Streaming"),
)
SHARDS = Page(
    "shards",
    "Downloads of shards",
    "What nodes download, which is counted. Targets are of 1e5 uneven shards of 512 samples in "
    "the mean, on 16 nodes. [Shards](../../docs/shards.md) says how to choose.",
    (
        lambda _: means("What is measured", "", "what | is", MEASURED),
        *TABLES,
        MIXING,
    ),
    (
        Figure("downloads under drop", 1.05, "times the dataset", downloads("drop")),
        Figure("downloads under pad", 1.05, "times the dataset", downloads("pad")),
        Figure("downloads under carry", 1.05, "times the dataset", downloads("carry")),
        Figure(
            "downloads under carry, 40 sub-epochs",
            1.05,
            "times the dataset",
            downloads("carry, 40 sub-epochs"),
        ),
        Figure(
            "downloads after a resume on 4 nodes, drop",
            1.05,
            "times what was left",
            downloads("drop, gone on"),
        ),
        Figure(
            "downloads after a resume on 4 nodes, carry",
            1.05,
            "times what was left",
            downloads("carry, gone on"),
        ),
        Figure(
            "downloads under spread, at its worst n",
            1.10,
            "times the dataset",
            downloads("spread, at its worst n"),
            loss=(
                "With one sample more than a number of full steps, step after step is a sample "
                "short, and they drift by nearly a global batch in all: each node passes through "
                "all lanes. Under drop, pad and carry none does."
            ),
        ),
        Figure(
            "live shards of a node",
            30,
            "shards",
            of("live", max),
            loss=(
                "A window is 1,020 places here, twice the mean size, and a lane's turn takes 64: "
                "all lanes pass from one window to the next within a turn, and hold the shards of "
                "both. Where the turn divides the window, as with a mean of 512 and a window of "
                "1,024, 23 are live."
            ),
        ),
        Figure(
            "different shards in a global batch, the fewest, drop and carry",
            120,
            "shards",
            lambda rows: min(of_figure(rows, rule)["least"] for rule in ("drop", "carry")),
            least=True,
        ),
        Figure(
            "different shards in a global batch, in the mean",
            120,
            "shards",
            of("different", min),
            least=True,
        ),
        Figure(
            "window 1: downloads under drop", 1.05, "times the dataset", downloads("drop", NARROW)
        ),
        Figure(
            "window 1: downloads under spread, at its worst n",
            1.10,
            "times the dataset",
            downloads("spread, at its worst n", NARROW),
            loss="As with a window of 2, but with fewer live shards that two nodes then read.",
        ),
        Figure("window 1: live shards of a node", 30, "shards", of("live", max, NARROW)),
        Figure(
            "window 1: different shards in a global batch, in the mean",
            120,
            "shards",
            of("different", min, NARROW),
            least=True,
        ),
    ),
    f"{INSTALL}\n",
)
