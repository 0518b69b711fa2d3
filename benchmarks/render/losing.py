"""Every row in which a rival is ahead, found automatically, and the reason, written by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.contenders.planners import NAMES, OURS
from benchmarks.render.page import Block
from benchmarks.render.results import Results
from benchmarks.render.views import VIEWS, View, shown
from benchmarks.render.writer import number, power, tabular

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
# (table, rival) -> why it is ahead. The report says so where a row has no line here.
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
    ("loader", "torch DistributedSampler, 0 workers"): _LOADER,
    ("loader", "torchdata StatefulDistributedSampler, 0 workers"): _LOADER,
    ("loader", "torch DistributedSampler, 2 workers"): _LOADER,
    ("loader", "torchdata StatefulDistributedSampler, 2 workers"): _LOADER,
    ("orders: middle_us", "Megatron blending"): _BUILT,
    ("orders: middle_us", "datasets interleave_datasets"): _BUILT,
    ("orders: ns", "Megatron blending"): (
        "One loop writes a source and a number in it for every read of the run. Shuffling the "
        "sources, which ours includes, comes on top, and so does seeking. Its cost grows with the "
        "sources (see 30), much faster than that of ours."
    ),
    ("orders: first_seconds", "Grain mix"): _TREE,
    ("orders: cold_seconds", "Grain mix"): _TREE,
    ("orders: deviation", "Grain mix"): _IN_STEP,
    ("orders: deviation", "Megatron blending"): (
        "It takes the source that is furthest behind, read by read from the first: it cannot start "
        "elsewhere, promises nothing, and is in step with the ranks (see the rank bias). Ours is "
        "below 3.36 for all weights, everywhere, and favours no rank."
    ),
    ("bins: again", "axolotl multipack"): _REPACKED,
    ("bins: again", "Grain first fit"): _REPACKED,
    ("bins: again", "transformers LengthGroupedSampler"): (
        "32 buckets are as random as its mega-batches for 1e6 samples, and a little less for fewer."
    ),
    ("bins: epoch_seconds", "TRL bfd"): _SAME_BINS,
    ("bins: epoch_seconds", "TRL bfd, all rows at once"): _SAME_BINS,
    ("bins: epoch_seconds", "OLMo-core packer"): _SAME_BINS,
    ("bins: epoch_seconds", "fairseq batch_by_size"): _SAME_BINS,
    ("bins: fill", "TRL bfd, all rows at once"): _FULLEST,
    ("bins: fill", "OLMo-core packer"): _FULLEST,
    ("bins: padding", "fairseq batch_by_size"): _EXACT,
    ("bins: padding", "transformers LengthGroupedSampler"): (
        "For even lengths, a sort inside random mega-batches is finer than few buckets of all. But "
        "neighbouring batches have similar lengths (see lag-1), and its inverse needs the sort."
    ),
    ("bins: uneven", "VERL Karmarkar-Karp"): (
        "Each rank gets four samples of even lengths: differencing is then finer than giving to "
        "the least loaded rank. With long tails it is behind by more than a third."
    ),
    ("bins: variance", "axolotl multipack"): _SPEECH,
    ("bins: variance", "Grain first fit"): _SPEECH,
    ("bins: variance", "transformers LengthGroupedSampler"): (
        "Batches that are sorted less well differ less (see the padding). 32 means one length in "
        "each batch."
    ),
    ("bins: window_seconds", "Megatron indices"): (
        "It looks up arrays of the whole epoch, in memory. Ours makes none: each window permutes "
        "its blocks of 1,024 documents."
    ),
}


class Loss(NamedTuple):
    """One row of one table in which a rival is ahead of us."""

    table: str
    title: str
    rival: str
    row: str
    theirs: str
    ours: str

    def why(self) -> str:
        """Return the explanation, or nothing."""
        return EXPLANATIONS.get((self.table, self.rival), "")


def of_view(view: View, records: list[dict[str, Any]]) -> list[Loss]:
    """Return the rows of a view in which a rival is ahead of what we compute.

    Our saved plan stands in only where computing is no answer, as for building a file.
    """
    losses = []
    for place, row in shown(view, records).items():
        ours = [name for name, record in row.items() if NAMES[name].ours and "stop" not in record]
        if not ours:
            continue
        mine = view.value(row[OURS if OURS in ours else ours[0]])
        name = f"world {place:,}" if view.by_world else f"n = {power(place)}"
        losses += [
            Loss(view.key, view.title, rival, name, view.show(theirs), view.show(mine))
            for rival, record in row.items()
            if not NAMES[rival].ours and "stop" not in record
            for theirs in [view.value(record)]
            if view.better(theirs, mine)
        ]
    return losses


def of_timings(results: Results) -> list[Loss]:
    """Return the rows of the repeated timings in which a rival's median is lower."""
    losses = []
    for table, rows in results.tables.items():
        if table not in {"whole permutation", "sampler", "loader"}:
            continue
        for row in rows:
            if row.name.startswith("indexplan"):
                continue
            alike = [
                mine
                for mine in rows
                if mine.name.startswith("indexplan")
                and mine.num_indices == row.num_indices
                and mine.name.partition(", ")[2] == row.name.partition(", ")[2]
            ]
            mine = min(alike, key=lambda one: one.median)
            if row.median < mine.median:
                words = f"{row.num_indices:,} indices"
                theirs, ours = (f"{number(one.ns())} ns per index" for one in (row, mine))
                losses.append(Loss(table, table, row.name, words, theirs, ours))
    return losses


def of_contest(results: Results) -> list[Loss]:
    """Return the rows of all views in which a rival is ahead."""
    return [
        loss
        for view in VIEWS
        if view.question in results.contest
        for loss in of_view(view, results.contest[view.question])
    ]


MOST_CELLS = 7
"""So many cells of a table are written out; of more, the first and the last."""


def section(losses: list[Loss]) -> list[Block]:
    """Return them as a table, one row for each table and rival."""
    entries: dict[tuple[str, str], list[Loss]] = {}
    for loss in losses:
        entries.setdefault((loss.title, loss.rival), []).append(loss)
    rows, said = [], dict[str, str]()
    for (title, rival), found in entries.items():
        cells = [f"{one.row}: {one.theirs}, ours {one.ours}" for one in found]
        if len(cells) > MOST_CELLS:
            cells = [f"{len(cells)} cells, from {cells[0]}", f"to {cells[-1]}"]
        why = found[0].why()
        rows.append((title, rival, "; ".join(cells), said.get(why, why) or "**Not explained.**"))
        said.setdefault(why, f'As for "{title}", {rival}.' if why else "")
    words = "Found from the tables; the reasons are ours." if rows else "Nowhere."
    found_here = tabular("what | rival | theirs, ours | why", rows, "l") if rows else []
    return ["## Where a rival is ahead", words, *found_here]
