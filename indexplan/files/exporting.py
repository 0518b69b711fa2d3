"""export: write what each rank reads, as arrays or tables, for readers without this library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from indexplan.errors import Cure, PlanFileError, check_callable, difference_in_words, invalid
from indexplan.files.chunk_files import Progress
from indexplan.files.columns import content, num_bytes
from indexplan.files.format import DERIVED, HEADER_BYTES, SLAB_UNITS, header
from indexplan.files.rows import blocks_of, check_pyarrow, other_rows
from indexplan.files.saving import Saved
from indexplan.keywords import named
from indexplan.orders.base import Int64
from indexplan.partition.ranks import below
from indexplan.plan.plan import Plan, check_plan, columns_of, layout_of
from indexplan.seeds import check_epochs
from indexplan.stores.agree import Differs, claim, put
from indexplan.stores.open import store_of
from indexplan.stores.store import Store

EXPORT = "export.json"
Format = Literal["npy", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
STEPS = 2**12  # steps whose sizes are drawn together: with batches of 256, two slabs of indices


class _File(NamedTuple):
    """A file of an export: its name in the folder, its size in bytes, and how to generate it.

    For tables, `size` is a guess, and the rows of a file are compared instead of its bytes.
    """

    name: str
    size: int
    blocks: Callable[[], Iterator[memoryview]]
    differs: Differs | None = None


class _Share(NamedTuple):
    """What one rank reads in one sub-epoch; it becomes two files."""

    plan: Plan
    epoch: int
    sub_epoch: int
    rank: int

    def files(self) -> Iterator[_File]:
        """Yield the file of indices, and the file that says where each step starts among them."""
        folder = f"epoch-{self.epoch:05d}"
        if self.plan.sub_epochs > 1:
            folder += f"/sub-epoch-{self.sub_epoch:05d}"
        name = f"{folder}/rank-{self.rank:05d}"
        size = int(_dtype(self.plan)[-1])
        yield _File(f"{name}.npy", HEADER_BYTES + size * self.num_units, self.indices)
        yield _File(f"{name}.steps.npy", HEADER_BYTES + 8 * (self.num_steps + 1), self.steps)

    @property
    def num_steps(self) -> int:
        return self.plan.steps(self.epoch, self.sub_epoch).stop

    @property
    def num_units(self) -> int:
        steps = layout_of(self.plan).steps(self.epoch, self.sub_epoch)
        if not steps.spans:
            return 0
        ranks, places = self.plan.world_size or 1, (steps.spans[0].start, steps.end)
        start, stop = (
            below(store + steps.origin, self.rank + 1, ranks)
            - below(store + steps.origin, self.rank, ranks)
            for store in places
        )
        return stop - start

    def indices(self) -> Iterator[memoryview]:
        """Yield the bytes of the file of indices, at most a slab or one batch at a time."""
        dtype = _dtype(self.plan)
        yield memoryview(header(dtype, self.num_units))
        for first, sizes in self.sizes():
            ends = np.cumsum(sizes)
            start = done = 0
            while start < len(sizes):
                stop = max(start + 1, int(np.searchsorted(ends, done + SLAB_UNITS, "right")))
                indices = self.plan.indices(
                    self.epoch,
                    self.sub_epoch,
                    rank=self.rank,
                    start_step=first + start,
                    stop_step=first + stop,
                )
                yield _bytes(indices, dtype)
                start, done = stop, int(ends[stop - 1])

    def steps(self) -> Iterator[memoryview]:
        """Yield the bytes of the file of steps; batches of finished steps are empty."""
        yield memoryview(header("<i8", self.num_steps + 1))
        zeros = 1 + self.plan.steps(self.epoch, self.sub_epoch).start
        for start in range(0, zeros, SLAB_UNITS):
            yield _bytes(np.zeros(min(SLAB_UNITS, zeros - start), np.int64), "<i8")
        total = 0
        for _, sizes in self.sizes():
            ends = total + np.cumsum(sizes)
            yield _bytes(ends, "<i8")
            total = int(ends[-1])

    def sizes(self) -> Iterator[tuple[int, Int64]]:
        """Yield the sizes of some thousand batches at a time, with the number of the first step."""
        stop = self.num_steps
        for start in range(self.plan.steps(self.epoch, self.sub_epoch).start, stop, STEPS):
            yield (
                start,
                self.plan.batch_sizes(
                    self.epoch,
                    self.sub_epoch,
                    rank=self.rank,
                    start_step=start,
                    stop_step=min(stop, start + STEPS),
                ),
            )


def _dtype(plan: Plan) -> str:
    """Return the indices' type: 4 bytes where they fit."""
    return "<u4" if plan.order.num_samples <= 2**32 else "<i8"


def _bytes(numbers: Int64, dtype: str) -> memoryview:
    return memoryview(numbers.astype(dtype).tobytes())  # memoryview.cast refuses empty arrays


@named
def export(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    epochs: Iterable[int] = range(1),
    format: Format = "npy",  # noqa: A002 (the word that every writer of files has for it)
    progress: Progress | None = None,
) -> Saved:
    """Write the indices that each rank reads, in order of reading, as `.npy` files or as tables.

    Use it for loaders that take arrays of indices, and to look at a plan with other tools:
    docs/exports.md describes the files, and how loaders read them. Memory does not grow with the
    plan. It is safe to kill and to run again: what is there already is compared with what belongs
    there, and never replaced. More epochs may be exported to the same folder later. The columns of
    the order are written too, as in a plan directory: `Plan.from_dict(json["plan"], columns=...)`
    opens the plan in `export.json`.

    Parameters
    ----------
    plan : Plan
        With a world_size; for "npy", with an order of single samples. Of a resumed plan,
        only the rest is written: finished sub-epochs have no files or rows, and finished steps are
        empty.
    out : str or path-like
        The folder: new, empty, or an export of the same plan. With the extra `remote`, also a URL
        in an object store, such as s3://bucket/arrays.
    epochs : iterable of int, default range(1)
        The epochs to write, 0 <= epoch < 2**32.
    format : {"npy", "parquet"}, default "npy"
        "npy": two files for each rank, its indices and where its steps start. The others, which
        need pyarrow: a file for each epoch, with a row for each slot of each batch, in columns
        `epoch`, `sub_epoch`, `step`, `rank`, `micro_batch`, `slot` and `index` (int64), and
        `padded` (bool). If the order has bins, `bin` (int64) says which bin of the batch it is.
    progress : callable, optional
        Called as progress(bytes_done, bytes_in_all).

    Returns
    -------
    Saved
        How many files were written, and how many were kept.

    Raises
    ------
    PlanFileError
        If the folder cannot be written, holds something else, or links to other folders or files.
    IndexPlanError
        If the plan has no world_size, its order has bins and the format is "npy", pyarrow is
        missing for another format, or an argument breaks its rule; nothing has been written then.

    Examples
    --------
    >>> import indexplan as ip, numpy
    >>> plan = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
    >>> exported = ip.export(plan, "arrays")
    >>> numpy.load("arrays/epoch-00000/rank-00001.npy").tolist()
    [2, 3, 6, 8, 9]
    """
    check_plan("plan", plan)
    check_callable("progress", progress)
    if not isinstance(format, str) or format not in FORMATS:
        raise invalid("format", f"one of {', '.join(FORMATS)}", format, "leave it out for npy")
    if plan.order.deals_bins and format == "npy":
        cure = Cure(
            "read it with plan.units, or export it as 'parquet'",
            "see its batches with `indexplan show`, or give --format parquet",
        )
        raise invalid("an exported order", "one of single samples", plan.order.algorithm, cure)
    if plan.world_size is None:
        cure = Cure("use plan.replace(world_size=...)", "give --world-size")
        raise invalid("world_size", "set for an export, which has files for each rank", None, cure)
    numbers = sorted(set(check_epochs(epochs)))
    if not numbers:
        raise invalid("epochs", "at least one epoch", numbers, "leave it out for epoch 0")
    if format == "npy":
        files = [*_columns(plan), *(f for share in _shares(plan, numbers) for f in share.files())]
    else:
        check_pyarrow()
        files = [*_columns(plan), *_tables(plan, numbers)]
    total = sum(file.size for file in files)
    done = num_written = told = 0
    root = store_of(out, "out")
    if progress is not None:  # which may raise, if that is too much
        progress(0, total)
    _claim(root, plan)

    def tell(now: int) -> None:
        nonlocal told
        now = min(now, total)
        if progress is not None and now > told:  # a file that another wrote first is drawn again
            told = now
            progress(told, total)

    for file in files:
        blocks, rule = partial(_told, file.blocks, tell, done), "must hold what the plan deals"
        num_written += not put(root, file.name, blocks, rule, "export", file.differs)
        done += file.size
    root.tidy([EXPORT, *(file.name for file in files)])
    tell(total)  # the size of rows was a guess
    if format != "npy":
        total = sum(size or 0 for size in root.sizes([file.name for file in files]))
    return Saved(
        path=root.path,
        num_bytes=total,
        num_written=num_written,
        num_kept=len(files) - num_written,
        fingerprint=plan.fingerprint,
    )


def _columns(plan: Plan) -> Iterator[_File]:
    """Yield the files of the order's columns, for readers of `export.json`."""
    for digest, column in columns_of(plan).items():
        size = num_bytes(column.identity)
        yield _File(f"columns/{digest}.npy", size, partial(content, column))


def _shares(plan: Plan, epochs: list[int]) -> Iterator[_Share]:
    for epoch in epochs:
        first = plan.start.sub_epoch if epoch == plan.start.epoch else 0
        for sub_epoch in range(first, plan.sub_epochs):
            for rank in range(plan.world_size or 0):
                yield _Share(plan, epoch, sub_epoch, rank)


def _tables(plan: Plan, epochs: list[int]) -> Iterator[_File]:
    """Yield the files of rows: one for each epoch."""
    for epoch in epochs:
        # a row, compressed, takes 4 to 8 bytes
        size = 8 * sum(share.num_units for share in _shares(plan, [epoch]))
        yield _File(
            f"epoch-{epoch:05d}.parquet",
            size,
            partial(blocks_of, plan, epoch),
            partial(other_rows, plan, epoch),
        )


def _claim(root: Store, plan: Plan) -> None:
    """Make the place, and write to `export.json` what it is an export of."""
    content = {
        "format": "indexplan-export",
        "format_version": 1,
        "dtype": _dtype(plan),
        "plan": plan.to_dict(),
        "plan_fingerprint": plan.fingerprint,
    }
    what = "an export of the same plan"
    there = claim(root, EXPORT, what, content)
    if there != content:
        said = difference_in_words(there, content, DERIVED) or "other fields"
        got = f"one with {said[:1000]}"
        raise PlanFileError(root.path, f"must be new, empty or {what}", got, "choose another path")


def _told(
    blocks: Callable[[], Iterator[memoryview]], tell: Callable[[int], None], done: int
) -> Iterator[memoryview]:
    """Yield blocks, telling how many bytes are done."""
    for block in blocks():
        yield block
        done += len(block)
        tell(done)
