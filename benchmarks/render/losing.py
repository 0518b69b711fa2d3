"""Every row in which a rival is ahead, found by itself, and why it is, written by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.render.results import Results
from benchmarks.render.views import VIEWS, View, shown
from benchmarks.render.writer import number, power
from benchmarks.rivals import NAMES, OURS

_FILE = (
    "It copies from a file that was built before (see Building a file), lies in memory as pages, "
    "and holds one epoch; nothing is computed. It copies uint32, half of our int64's bytes, and "
    "leaves out the epoch's last step. Without the file it takes as long as a whole permutation."
)
_PAGES = (
    "Neither keeps anything that grows with n. What differs are pages of the interpreter's heap "
    "and, of ours, the keys of an epoch and a first batch as an array."
)

_SMALL_FILE = (
    "A file of a few megabytes is shuffled in the cache. Ours makes five files, hashes every block "
    "and waits for the disk at each, which np.save leaves to the kernel."
)
_LOADER = (
    "The order is a hundredth of such a pass: the rest is DataLoader's own work, and with workers "
    "three processes on two cores. One run differs from another by more than the two do: see the "
    "minima beside the medians."
)

_BUILT = (
    "It copies from arrays that lie in memory, for the whole epoch. Ours keeps none, and makes and "
    "checks a batch of a plan."
)
_SAME_BINS = (
    "Its bins are the same in every epoch, which shuffles a list of them. Ours have other samples "
    "in each."
)
_REPACKED = (
    "It packs each epoch anew, which takes the time that the table says, makes another number of "
    "bins in each, and tells no bin before those before it. In ours two samples meet again where "
    "their lengths do: few of one length are left to change places with."
)
_FULLEST = (
    "Best fit, whose bins are the fullest, and the least alike (see the variance), with the same "
    "samples in every epoch. Ours may take a thousandth more bins to have them alike."
)
_SPEECH = (
    "Its bins are less full. Ours take a thousandth more than the fewest at most, and of long "
    "samples with two humps nothing but best fit is within that."
)
_EXACT = (
    "It sorts all samples, so those of a batch are of one length, and the same in every epoch. "
    "More buckets come nearer: see docs/design.md on what they cost."
)
# (table, rival) -> why it is ahead. The report says so where a row has no line here.
EXPLANATIONS: dict[tuple[str, str], str] = {
    ("first_batch", "Grain index_shuffle"): (
        "256 calls of a C function with four arguments, and no object made. Ours makes and checks "
        "a plan and derives an epoch's keys; from the second batch on it is ahead, see One rank's "
        "share. Grain's order is neither random nor, at some sizes, complete: see Quality."
    ),
    ("resume", "Grain index_shuffle"): (
        "As for the first batch: 256 calls, against a cursor that is read and checked, a plan, and "
        "its keys."
    ),
    ("memory", "Grain index_shuffle"): _PAGES,
    ("memory", "Grain IndexSampler"): _PAGES,
    ("share", "Megatron-style cached .npy"): _FILE,
    ("worlds", "Megatron-style cached .npy"): _FILE,
    ("resume", "Megatron-style cached .npy"): (
        "Maps its file and copies 256 numbers. Ours reads and checks a cursor, makes a plan, "
        "derives keys and draws a batch. The file has to be there, on each node, for the epoch."
    ),
    ("build", "Megatron-style cached .npy"): _SMALL_FILE,
    ("build_rate", "Megatron-style cached .npy"): _SMALL_FILE,
    ("whole permutation", "torch.randperm"): (
        "Integers that lie in the cache are cheap to shuffle in place, while shuffle-v1 takes the "
        "more rounds the smaller n is (24 below `2**12`, 12 below `2**20`, else 8), as fewer fail "
        "statistical tests there."
    ),
    ("whole permutation", "numpy Generator.permutation"): (
        "The same: below 2**12, 24 rounds cost more than swaps in the cache."
    ),
    ("loader", "torch DistributedSampler, 0 workers"): _LOADER,
    ("loader", "torchdata StatefulDistributedSampler, 0 workers"): _LOADER,
    ("loader", "torch DistributedSampler, 2 workers"): _LOADER,
    ("loader", "torchdata StatefulDistributedSampler, 2 workers"): _LOADER,
    ("orders: middle_us", "Megatron blending"): _BUILT,
    ("orders: middle_us", "datasets interleave_datasets"): _BUILT,
    ("orders: ns", "Megatron blending"): (
        "One loop writes a source and a number in it for every read of the run, and nothing else: "
        "the shuffles of the sources, which ours include, come on top, and so does seeking. What "
        "it costs grows with the sources (see 30); ours does not."
    ),
    ("orders: first_seconds", "Grain mix"): (
        "It works out 256 numbers, and no more. Ours first makes the table of the pattern, of as "
        "many entries as the weights have whole parts, which keeps every source within one read "
        "of its share, and each index from depending on the number of sources."
    ),
    ("orders: deviation", "Megatron blending"): (
        "It takes the source that is furthest behind, read by read from the first, so it cannot "
        "start anywhere, and promises nothing. Ours is below 1 for all weights, at every place."
    ),
    ("bins: again", "axolotl multipack"): _REPACKED,
    ("bins: again", "Grain first fit"): _REPACKED,
    ("bins: again", "transformers LengthGroupedSampler"): (
        "32 buckets are as random as its mega-batches of 1e6 samples; of fewer, a little less."
    ),
    ("bins: epoch_seconds", "TRL bfd"): _SAME_BINS,
    ("bins: epoch_seconds", "TRL bfd, all rows at once"): _SAME_BINS,
    ("bins: epoch_seconds", "OLMo-core packer"): _SAME_BINS,
    ("bins: epoch_seconds", "fairseq batch_by_size"): _SAME_BINS,
    ("bins: fill", "TRL bfd, all rows at once"): _FULLEST,
    ("bins: fill", "OLMo-core packer"): _FULLEST,
    ("bins: padding", "fairseq batch_by_size"): _EXACT,
    ("bins: padding", "transformers LengthGroupedSampler"): (
        "Of even lengths, a sort inside random mega-batches is finer than few buckets of all. It "
        "has neighbouring batches of similar lengths (see lag-1), and no inverse without the sort."
    ),
    ("bins: uneven", "VERL Karmarkar-Karp"): (
        "A rank gets four units of even lengths: differences come out finer than what the least "
        "loaded rank can still be given. Where tails are long it is behind by more than a third."
    ),
    ("bins: variance", "axolotl multipack"): _SPEECH,
    ("bins: variance", "Grain first fit"): _SPEECH,
    ("bins: variance", "transformers LengthGroupedSampler"): (
        "Batches that are sorted less well differ less: see the padding. 32 is what samples of one "
        "length in each come to."
    ),
    ("bins: window_seconds", "Megatron indices"): (
        "It looks up arrays of the whole epoch that lie in memory. Ours makes none: each window "
        "permutes its blocks of 1,024 documents."
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


def all_losses(results: Results) -> list[Loss]:
    """Return every row, of every table, in which a rival is ahead."""
    losses = []
    for view in VIEWS:
        if view.question in results.contest:
            losses += of_view(view, results.contest[view.question])
    return losses + of_timings(results)


def section(losses: list[Loss]) -> list[str]:
    """Return them as a list, one entry for each table and rival."""
    entries: dict[tuple[str, str], list[Loss]] = {}
    for loss in losses:
        entries.setdefault((loss.table, loss.rival), []).append(loss)
    lines = ["## Where a rival is ahead", "", "Found from the tables; the reasons are ours.", ""]
    for rows in entries.values():
        first = rows[0]
        numbers = "; ".join(f"{one.row}: {one.theirs}, ours {one.ours}" for one in rows)
        why = first.why() or "**Not explained.**"
        lines.append(f"- **{first.title}, {first.rival}** ({numbers}). {why}")
    return [*lines, *(["None."] if not entries else []), ""]
