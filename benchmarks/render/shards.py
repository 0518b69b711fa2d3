"""What nodes download, compared with MosaicML Streaming's code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.measure.shards import BATCH, RANKS, RULES, SPREAD
from benchmarks.render import losing
from benchmarks.render.page import Block
from benchmarks.render.writer import Figure, number, power, section, tabular

OURS = "ShardShuffle"
NARROW = f"{OURS}, window 1"
MANY, FIGURE_NODES = 10**5, 16
SURE = 0.02
"""Downloads by which somebody is ahead, or variance: less is chance."""
Record = dict[str, Any]
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


def records(data: Any, **fields: Any) -> list[Record]:
    """Return what was found where these fields are so."""
    return [
        record
        for record in data["shards"]["records"]
        if all(record[name] == value for name, value in fields.items())
    ]


def of_figure(data: Any, remainder: str, **fields: Any) -> Record:
    """Return what was found of ours in the case of the figures: 1e5 uneven shards, 16 nodes."""
    case = {"shards": MANY, "even": False, "nodes": FIGURE_NODES, "who": OURS}
    (record,) = records(data, **{**case, **PLAIN, "remainder": remainder, **fields})
    return record


PLAIN = {"sub_epochs": 1, "resumed": 0}
IN_CASE = (
    ("drop", {}),
    ("pad", {}),
    ("carry", {}),
    ("carry", {"sub_epochs": 40}),
)


def downloads(remainder: str, **fields: Any) -> Callable[[Any], float]:
    """Return a figure's measure: downloads."""

    def measure(data: Any) -> float:
        record = of_figure(data, remainder, **fields)
        return float(record["times"] / record["left"])

    return measure


def of(
    key: str, best: Callable[[Iterable[float]], float], who: str = OURS
) -> Callable[[Any], float]:
    """Return a figure's measure: the worst over the plans that keep their lanes."""
    return lambda data: best(of_figure(data, rule, who=who, **more)[key] for rule, more in IN_CASE)


FIGURES = (
    Figure("downloads under drop", 1.05, "times the dataset", downloads("drop")),
    Figure("downloads under pad", 1.05, "times the dataset", downloads("pad")),
    Figure("downloads under carry", 1.05, "times the dataset", downloads("carry")),
    Figure(
        "downloads under carry, 40 sub-epochs",
        1.05,
        "times the dataset",
        downloads("carry", sub_epochs=40),
    ),
    Figure(
        "downloads after a resume on 4 nodes, drop",
        1.05,
        "times what was left",
        downloads("drop", resumed=4),
    ),
    Figure(
        "downloads after a resume on 4 nodes, carry",
        1.05,
        "times what was left",
        downloads("carry", resumed=4),
    ),
    Figure(
        "downloads under spread, at its worst n",
        1.10,
        "times the dataset",
        downloads("spread, worst n"),
        loss=(
            "With one sample more than a number of full steps, step after step is a sample short, "
            "and they drift by nearly a global batch in all: each node passes through all lanes. "
            "Under drop, pad and carry none does."
        ),
    ),
    Figure(
        "live shards of a node",
        30,
        "shards",
        of("live", max),
        loss=(
            "A window is 1,020 places here, twice the mean size, and a lane's turn takes 64: all "
            "lanes pass from one window to the next within a turn, and hold the shards of both. "
            "Where the turn divides the window, as with a mean of 512 and a window of 1,024, 23 "
            "are live."
        ),
    ),
    Figure(
        "different shards in a global batch, the fewest, drop and carry",
        120,
        "shards",
        lambda data: min(of_figure(data, rule)["least"] for rule in ("drop", "carry")),
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
        "window 1: downloads under drop", 1.05, "times the dataset", downloads("drop", who=NARROW)
    ),
    Figure(
        "window 1: downloads under spread, at its worst n",
        1.10,
        "times the dataset",
        downloads("spread, worst n", who=NARROW),
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
)

EXPLAINED = {
    "different": (
        "Streaming shuffles blocks of 262,144 samples or more in each canonical node, and keeps "
        "all shards of a block live. More lanes do the same (see Mixing); 64 keep few shards live."
    ),
    "downloads": (
        "The end of a lane divides a shard, which two nodes may then read: with few shards for "
        "many lanes, much of the dataset. Take fewer lanes, but one for each node, or smaller "
        "shards."
    ),
    "live": (
        "A node reads few shards from front to back, so a batch mixes as few; py1s also downloads "
        "most shards to several nodes."
    ),
}


def rival_losses(data: Any) -> list[losing.Loss]:
    """Return the cells in which a shuffle of Streaming is ahead of ours under drop."""
    found = []
    for record in data["shards"]["records"]:
        if record["who"].startswith(OURS):
            continue
        case = {name: record[name] for name in ("shards", "even", "nodes", "resumed")}
        (mine,) = records(data, **case, who=OURS, remainder="drop", sub_epochs=1)
        kind = "even" if record["even"] else "uneven"
        nodes = f"{record['nodes']} node{'s' * (record['nodes'] > 1)}"
        row = f"{power(record['shards'])} {kind} shards, {nodes}"
        row += f", gone on with {record['resumed']}" * bool(record["resumed"])
        pairs = {
            "downloads": (times(record), times(mine), times(mine) - times(record) > SURE),
            "live": (record["live"], mine["live"], record["live"] < mine["live"]),
            "different": (
                *(record["different"], mine["different"]),
                record["different"] > mine["different"],
            ),
        }
        found += [
            losing.Loss(f"shards: {key}", TITLES[key], record["who"], row, number(a), number(b))
            for key, (a, b, ahead) in pairs.items()
            if ahead
        ]
    return found


TITLES = {
    "downloads": "Downloads",
    "live": "Live shards of a node",
    "different": "Different shards in a step",
}
losing.EXPLANATIONS.update(
    {
        (f"shards: {key}", f"Streaming {rule}"): words
        for key, words in EXPLAINED.items()
        for rule in RULES
    }
)


def losses(data: Any) -> list[losing.Loss]:
    """Return every cell in which a rival is ahead, the variances among them."""
    found = rival_losses(data)
    for row in data["shards"]["mixing"]:
        ours = {
            each["who"]: each
            for each in data["shards"]["mixing"]
            if each["shards"] == row["shards"] and each["who"].startswith(OURS)
        }
        if not row["who"].startswith("Streaming"):
            continue
        mine = ours[f"{OURS}, window 2"]
        if row["variance"] < mine["variance"] - SURE and mine["variance"] > 1 + SURE:
            found.append(
                losing.Loss(
                    "shards: different",
                    "Variance of label counts",
                    row["who"],
                    f"{power(row['shards'])} uneven shards",
                    number(row["variance"]),
                    number(mine["variance"]),
                )
            )
    return found


def times(record: Record) -> float:
    """Return downloads over what was left."""
    return float(record["times"] / record["left"])


def cell(record: Record) -> str:
    """Write what was found of one plan."""
    if not record["live"]:
        return "reads nothing"
    return f"{times(record):.2f} / {record['live']} / {record['different']:.0f}"


def rows_of() -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of a table: what they are called, and the fields that choose them."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for sub_epochs in (1, 40):
        for remainder in ("drop", "pad", "spread", "carry"):
            name = f"{remainder}, 40 sub-epochs" if sub_epochs > 1 else remainder
            fields = {"remainder": remainder, "sub_epochs": sub_epochs, "resumed": 0}
            rows.append((f"{OURS}, {name}", {"who": OURS, **fields}))
    for remainder in ("drop", "pad", "spread", "carry"):
        fields = {"remainder": remainder, "sub_epochs": 1}
        rows.append((f"{OURS}, {remainder}, gone on", {"who": OURS, **fields, "on": True}))
    rows.append(
        (f"{OURS}, spread, at its worst n", {"who": OURS, "remainder": "spread, worst n", **PLAIN})
    )
    narrow = {"who": NARROW, **PLAIN}
    rows += [(f"{NARROW}, {rule}", {**narrow, "remainder": rule}) for rule in ("drop", "carry")]
    at_worst = {**narrow, "remainder": "spread, worst n"}
    rows.append((f"{NARROW}, spread, at its worst n", at_worst))
    for rule in RULES:
        rows.append((f"Streaming {rule}", {"who": f"Streaming {rule}", "resumed": 0}))
    rows.append((f"Streaming {RULES[0]}, gone on", {"who": f"Streaming {RULES[0]}", "on": True}))
    return rows


def table(data: Any, shards: int, even: bool, nodes: list[int]) -> list[Block]:
    """Return what was found of some shards: rows for plans, columns for numbers of nodes."""
    rows = []
    for name, fields in rows_of():
        on = fields.pop("on", False)
        cells = []
        for each in nodes:
            found = records(data, shards=shards, even=even, nodes=each, **fields)
            cells += [cell(record) for record in found if record["resumed"] or not on][:1] or [""]
        if any(cells):
            rows.append([name, *cells])
    return tabular(" | ".join(["who", *(f"{each} node{'s' * (each > 1)}" for each in nodes)]), rows)


def mixing(data: Any) -> list[Block]:
    """Return how evenly labels are mixed."""
    rows = [
        (
            power(row["shards"]),
            row["who"],
            number(row["variance"]),
            f"{row['different']:.0f}",
            row["live"],
            f"{row['times']:.2f}",
        )
        for row in sorted(data["shards"]["mixing"], key=lambda row: row["shards"])
    ]
    names = "shards", "who", "variance", "different in a step", "live of a node", "downloads"
    return tabular(" | ".join(names), rows, "llr")


def blocks(data: Any) -> list[Block]:
    """Return the page's blocks."""
    found = data["shards"]["records"]
    parts = section("What is measured", "", tabular("what | is", MEASURED.items(), "l"))
    nodes = sorted({record["nodes"] for record in found})
    for shards in sorted({record["shards"] for record in found}):
        for even in (True, False):
            kind = "even" if even else "uneven"
            title = f"{power(shards)} {kind} shards"
            parts += section(title, "", table(data, shards, even, nodes))
    return parts + section("Mixing", MIXED, mixing(data))
