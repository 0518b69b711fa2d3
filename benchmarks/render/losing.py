"""Every cell in which a rival is ahead, found automatically, and the reason, written by hand."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import Column, Page, Table, table

_FILE = (
    "It only copies one epoch from a file that was built before (see Building a file) and lies in "
    "memory as pages; without it, it takes as long as a whole permutation. It copies uint32, half "
    "of our int64's bytes, and leaves out the epoch's last step."
)
_PAGES = (
    "Neither keeps anything that grows with n. They differ in pages of the interpreter's heap; "
    "ours also has the keys of an epoch and a first batch as an array."
)

_SMALL_FILE = (
    "A file of a few megabytes is shuffled in the CPU's cache. Ours makes five files, hashes every "
    "block and waits for the disk at each; np.save leaves that to the kernel."
)
_LOADER = (
    "The order is a hundredth of such a pass; the rest is DataLoader's own work, with workers "
    "three processes on two cores. Runs differ more than the two do: see the minima."
)

_TREE = (
    "It works out only 256 numbers. Ours first joins the sources in a tree, and draws coins for "
    "every read: so no rank gets more of a source than others, and any place is found at once."
)
_IN_STEP = (
    "Its pattern is fixed: the same in each period, and so in step with the ranks (see the rank "
    "bias). Ours may be `mixture.within` reads from a share, and favours no rank."
)
_BUILT = (
    "It copies from arrays of the whole epoch, in memory. Ours keeps none, and makes and checks a "
    "batch of a plan."
)
_SAME_BINS = (
    "It only shuffles a list of bins, the same in every epoch. Ours have other samples in each "
    "epoch."
)
_REPACKED = (
    "It packs each epoch anew, which takes the time in the table, changes the number of bins, and "
    "cannot tell a bin without those before it. Two of our samples meet again where few others "
    "have their lengths, to change places with."
)
_FULLEST = (
    "Best fit: the fullest bins, but the least alike (see the variance), and the same in every "
    "epoch. Ours may take a thousandth more bins to make them alike."
)
_SPEECH = (
    "Its bins are less full. Ours are at most a thousandth more than the fewest, and for long "
    "samples with two humps only best fit achieves that."
)
_EXACT = (
    "It sorts all samples: a batch has one length, and the same samples in every epoch. More "
    "buckets come nearer."
)
_STREAMING = {
    "different": (
        "Streaming shuffles blocks of 262,144 samples or more in each canonical node, and keeps "
        "all shards of a block live. More lanes do the same (see Mixing); 64 keep few shards live."
    ),
    "times": (
        "The end of a lane divides a shard, which two nodes may then read: with few shards for "
        "many lanes, much of the dataset. Take fewer lanes, but one for each node, or smaller "
        "shards."
    ),
    "live": (
        "A node reads few shards from front to back, so a batch mixes as few; py1s also downloads "
        "most shards to several nodes."
    ),
}
# (table or column, rival) -> why it is ahead. The report says so where a row has no line here.
EXPLANATIONS: dict[tuple[str, str], str] = {
    ("first_batch", "Grain index_shuffle"): (
        "256 calls of a C function, and no object made. Ours makes and checks a plan and derives "
        "an epoch's keys; from the second batch on it is ahead (see One rank's share). Grain's "
        "order is not random, nor complete at some sizes: see Quality."
    ),
    ("resume", "Grain index_shuffle"): (
        "256 calls, against reading and checking a cursor, and making a plan and its keys."
    ),
    ("memory", "Grain index_shuffle"): _PAGES,
    ("memory", "Grain IndexSampler"): _PAGES,
    ("share", "Megatron-style cached .npy"): _FILE,
    ("worlds", "Megatron-style cached .npy"): _FILE,
    ("resume", "Megatron-style cached .npy"): (
        "It maps a file and copies 256 numbers; each node must have the epoch's file. Ours reads "
        "and checks a cursor, makes a plan, derives keys and draws a batch."
    ),
    ("build", "Megatron-style cached .npy"): _SMALL_FILE,
    ("build_rate", "Megatron-style cached .npy"): _SMALL_FILE,
    ("whole permutation", "torch.randperm"): (
        "Shuffling in place is cheap in the CPU's cache. shuffle-v1 needs more rounds for small n "
        "to pass statistical tests: 24 below `2**12`, 12 below `2**20`, else 8."
    ),
    ("whole permutation", "numpy Generator.permutation"): (
        "Below `2**12`, 24 rounds cost more than swaps in the CPU's cache."
    ),
    ("loader", "torch DistributedSampler"): _LOADER,
    ("loader", "torchdata StatefulDistributedSampler"): _LOADER,
    ("middle_seconds", "Megatron blending"): _BUILT,
    ("middle_seconds", "datasets interleave_datasets"): _BUILT,
    ("ns", "Megatron blending"): (
        "One loop writes a source and a number in it for every read of the run. Shuffling the "
        "sources, which ours includes, comes on top, and so does seeking. Its cost grows with the "
        "sources (see 30), much faster than that of ours."
    ),
    ("first_seconds", "Grain mix"): _TREE,
    ("cold_seconds", "Grain mix"): _TREE,
    ("deviation", "Grain mix"): _IN_STEP,
    ("deviation", "Megatron blending"): (
        "It takes the source that is furthest behind, read by read from the first: it cannot start "
        "elsewhere, promises nothing, and is in step with the ranks (see the rank bias). Ours is "
        "below 3.36 for all weights, everywhere, and favours no rank."
    ),
    ("again", "axolotl multipack"): _REPACKED,
    ("again", "Grain first fit"): _REPACKED,
    ("again", "transformers LengthGroupedSampler"): (
        "32 buckets are as random as its mega-batches for 1e6 samples, and a little less for fewer."
    ),
    ("epoch_seconds", "TRL bfd"): _SAME_BINS,
    ("epoch_seconds", "TRL bfd, all rows at once"): _SAME_BINS,
    ("epoch_seconds", "OLMo-core packer"): _SAME_BINS,
    ("epoch_seconds", "fairseq batch_by_size"): _SAME_BINS,
    ("fill", "TRL bfd, all rows at once"): _FULLEST,
    ("fill", "OLMo-core packer"): _FULLEST,
    ("padding", "fairseq batch_by_size"): _EXACT,
    ("padding", "transformers LengthGroupedSampler"): (
        "For even lengths, a sort inside random mega-batches is finer than few buckets of all. But "
        "neighbouring batches have similar lengths (see lag-1), and its inverse needs the sort."
    ),
    ("step_seconds", "VERL Karmarkar-Karp"): (
        "A step of 64 samples is little work for both, in which one run is ahead and another "
        "behind; of 1,024 samples, see the others."
    ),
    ("uneven", "VERL Karmarkar-Karp"): (
        "Each rank gets four samples of even lengths: differencing is then finer than giving to "
        "the least loaded rank. With long tails it is behind by more than a third."
    ),
    ("variance", "axolotl multipack"): _SPEECH,
    ("variance", "Grain first fit"): _SPEECH,
    ("variance", "transformers LengthGroupedSampler"): (
        "Batches that are sorted less well differ less (see the padding). 32 means one length in "
        "each batch."
    ),
    ("window_seconds", "Megatron indices"): (
        "It looks up arrays of the whole epoch, in memory. Ours makes none: each window permutes "
        "its blocks of 1,024 documents."
    ),
}
_STREAMING["variance"] = _STREAMING["different"]
EXPLANATIONS |= {
    (key, f"Streaming {rule}"): words
    for key, words in _STREAMING.items()
    for rule in ("py1e", "py1s", "py1br")
}


class Loss(NamedTuple):
    """A cell of a table in which a rival is ahead of us."""

    table: Table
    column: Column
    rival: str
    case: str
    theirs: str
    ours: str

    @property
    def title(self) -> str:
        """What it is about: a table with one column of numbers, or a column."""
        title = self.table.title if self.column.unit else self.column.title or self.table.title
        return title[0].upper() + title[1:]

    def why(self) -> str:
        """Return the explanation, or nothing."""
        keys = (self.table.key, str(self.column.key))
        return next(
            (EXPLANATIONS[key, self.rival] for key in keys if (key, self.rival) in EXPLANATIONS), ""
        )


def losses(page: Page, rows: list[Row]) -> list[Loss]:
    """Return every cell of a run in which a rival is ahead of ours in the same case."""
    return [loss for each in page.tables() for loss in _of_table(each, rows)]


def _of_table(table: Table, rows: list[Row]) -> list[Loss]:
    found: list[Loss] = []
    compared = [each for each in table.compared or table.columns if each.better]
    there = kept.of(rows, table.key) if compared else []
    for row in there:
        of_case = {
            (each["who"], each.get("how", "")): each
            for each in there
            if each["case"] == row["case"]
        }
        names = table.ours(row)
        mine = next((of_case[name] for name in names if name in of_case), None)
        if mine is None or (row["who"], row.get("how", "")) in names or table.is_ours(row["who"]):
            continue
        for column in compared:
            (theirs,), (ours,) = (column.values(each, rows) for each in (row, mine))
            if (
                not isinstance(theirs, str)
                and not isinstance(ours, str)
                and column.better(theirs, ours)
            ):
                shown = (f"{column.show(value)}{column.unit}" for value in (theirs, ours))
                found.append(
                    Loss(
                        table,
                        column,
                        row["who"],
                        table.place.format_map({"how": "", **row}),
                        *shown,
                    )
                )
    return found


MOST_CELLS = 7
"""So many cells of a table are written out; of more, the first and the last."""


def section(losses: list[Loss]) -> list[str]:
    """Return them as a table, one row for each table and rival."""
    entries: dict[tuple[str, str], list[Loss]] = {}
    for loss in losses:
        entries.setdefault((loss.title, loss.rival), []).append(loss)
    lines, said = [], dict[str, str]()
    for (title, rival), found in entries.items():
        cells = [f"{one.case}: {one.theirs}, ours {one.ours}" for one in found]
        if len(cells) > MOST_CELLS:
            cells = [f"{len(cells)} cells, from {cells[0]}", f"to {cells[-1]}"]
        why = found[0].why()
        lines.append((title, rival, "; ".join(cells), said.get(why, why) or "**Not explained.**"))
        said.setdefault(why, f'As for "{title}", {rival}.' if why else "")
    words = "Found from the tables; the reasons are ours." if lines else "Nowhere."
    return [
        "## Where a rival is ahead",
        words,
        *([table(("what", "rival", "theirs, ours", "why"), lines, "l")] if lines else []),
    ]
