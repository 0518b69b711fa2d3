"""Tables of an export: what every rank reads in an epoch, for Parquet files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numpy as np

from indexplan.errors import IndexPlanError, install
from indexplan.orders.base import Int64
from indexplan.partition.steps import Span, Steps
from indexplan.parts import split
from indexplan.plan.plan import Plan, layout_of
from indexplan.stores.publish import explained
from indexplan.stores.store import Store

ROWS = 2**18  # of a row group, about: 17 MB; more only if one batch of one rank has more


def rows_of(plan: Plan, epoch: int) -> Iterator[Any]:
    """Yield an epoch's rows, in the sequence of steps, then ranks, then slots.

    Yields
    ------
    pyarrow.RecordBatch
        Some 2**18 rows of whole batches; int64 columns and the bool column `padded`. If the order
        deals bins, there is one more column: the bin of the batch that the sample is in.
    """
    first = plan.start.sub_epoch if epoch == plan.start.epoch else 0
    for sub_epoch in range(first, plan.sub_epochs):
        steps = layout_of(plan).steps(epoch, sub_epoch)
        for span in steps.spans:
            yield from _rows_of_span(plan, steps, span)


def _rows_of_span(plan: Plan, steps: Steps, span: Span) -> Iterator[Any]:
    """Yield the rows of the steps of one phase: many steps at a time, or some ranks of one step."""
    order, world_size = plan.order, layout_of(plan).world_size
    in_unit = max(1, order.num_samples // max(1, steps.num_units)) if order.deals_bins else 1
    in_step = in_unit * (span.length // span.num_steps + 1)
    num_steps = max(1, ROWS // in_step)
    num_ranks = world_size if in_step <= ROWS else max(1, ROWS // (in_step // world_size + 1))
    end = span.step + span.num_steps
    for start in range(max(span.step, steps.first_step), end, num_steps):
        for rank in range(0, world_size, num_ranks):
            ranks = range(rank, min(world_size, rank + num_ranks))
            yield _drawn(plan, steps, span, ranks, range(start, min(end, start + num_steps)))


def _drawn(plan: Plan, steps: Steps, span: Span, ranks: range, numbers: range) -> Any:
    """Return the rows of some ranks in some steps."""
    import pyarrow as pa

    where = steps.epoch, steps.sub_epoch
    samples: list[Int64] = []  # of each rank, one after another, as the next two
    units: list[Int64] = []  # the number in its batch of each sample's unit
    sizes = np.empty((len(ranks), len(numbers)), np.int64)  # samples of each batch
    micro: list[Int64] = []
    counts = layout_of(plan).phases[span.phase].inner_counts
    for i, rank in enumerate(ranks):
        stretch = {"rank": rank, "start_step": numbers.start, "stop_step": numbers.stop}
        in_units = plan.batch_sizes(*where, **stretch)
        batches = [np.arange(size) for size in in_units.tolist()]
        cut = [_micro_batches(size, counts) for size in in_units.tolist()]
        if plan.order.deals_bins:
            drawn = list(plan.batches(*where, **stretch, units=True))
            lengths = [np.diff(batch.offsets) for batch in drawn]
            batches = [np.repeat(n, each) for n, each in zip(batches, lengths, strict=True)]
            cut = [np.repeat(n, each) for n, each in zip(cut, lengths, strict=True)]
            samples += [batch.samples for batch in drawn]
        else:
            samples.append(plan.indices(*where, **stretch))
        sizes[i] = [len(batch) for batch in batches]
        units += batches
        micro += cut
    flat = sizes.ravel()
    step = np.repeat(np.tile(np.array(numbers), len(ranks)), flat)
    by_step = np.argsort(step, kind="stable")  # from rank by rank to step by step
    slot = np.arange(len(step)) - np.repeat(np.cumsum(flat) - flat, flat)
    rank_of = np.repeat(np.repeat(np.array(ranks), len(numbers)), flat)
    unit = np.concatenate(units)
    columns = {
        "epoch": np.full(len(step), steps.epoch),
        "sub_epoch": np.full(len(step), steps.sub_epoch),
        "step": step,
        "rank": rank_of,
        "micro_batch": np.concatenate(micro),
        **({"bin": unit} if plan.order.deals_bins else {}),
        "slot": slot,
        "index": np.concatenate([np.empty(0, np.int64), *samples]),
        "padded": _padded(plan, steps, ranks, step, rank_of, unit),
    }
    arrays = {name: pa.array(column[by_step]) for name, column in columns.items()}
    return pa.RecordBatch.from_pydict(arrays, schema=_schema(plan))


def _padded(
    plan: Plan, steps: Steps, ranks: range, step: Int64, rank: Int64, unit: Int64
) -> np.ndarray[Any, Any]:
    """Return which samples repeat others to fill the last step; bool, shape (samples,)."""
    last = steps.num_steps - 1
    if not steps.policy.repeats or not len(step) or last not in (step.min(), step.max()):
        return np.zeros(len(step), bool)
    valid = np.array([layout_of(plan).num_valid(steps, last, rank) for rank in ranks])
    found: np.ndarray[Any, Any] = (step == last) & (unit >= valid[rank - ranks.start])
    return found


@lru_cache(64)
def _micro_batches(size: int, counts: tuple[int, ...]) -> Int64:
    """Return the micro-batch that each unit of a batch is in; int64, shape (size,)."""
    sizes = [size]
    for count in counts:
        sizes = [
            split(each, count, part + 1) - split(each, count, part)
            for each in sizes
            for part in range(count)
        ]
    return np.repeat(np.arange(len(sizes)), sizes)


def _schema(plan: Plan) -> Any:
    import pyarrow as pa

    names = ["epoch", "sub_epoch", "step", "rank", "micro_batch", "slot", "index"]
    if plan.order.deals_bins:
        names.insert(5, "bin")
    fields = [pa.field(name, pa.int64(), nullable=False) for name in names]
    return pa.schema(
        [*fields, pa.field("padded", pa.bool_(), nullable=False)],
        {"indexplan.plan_fingerprint": plan.fingerprint},
    )


class _Sink(io.RawIOBase):
    """A file for a writer of pyarrow, which keeps blocks until they are fetched."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.written = 0

    def writable(self) -> bool:
        return True

    def write(self, block: Any) -> int:
        self.blocks.append(bytes(block))
        self.written += len(self.blocks[-1])
        return len(self.blocks[-1])

    def tell(self) -> int:
        return self.written

    def fetch(self) -> Iterator[memoryview]:
        blocks, self.blocks = self.blocks, []
        yield from (memoryview(block) for block in blocks)


def blocks_of(plan: Plan, epoch: int) -> Iterator[memoryview]:
    """Yield the bytes of a file with an epoch's rows, row group by row group."""
    import pyarrow.parquet as pq

    sink, options = _Sink(), {"compression": "zstd", "write_page_checksum": True}
    with pq.ParquetWriter(sink, _schema(plan), **options) as writer:
        for rows in rows_of(plan, epoch):
            writer.write_batch(rows, row_group_size=2**31 - 1)  # one row group each
            yield from sink.fetch()
    yield from sink.fetch()


def other_rows(plan: Plan, epoch: int, store: Store, name: str, _: Iterable[memoryview]) -> str:
    """Return "other rows" unless a file holds the rows of an epoch, in the same groups; else "".

    Its bytes may differ, as another version of pyarrow may have written them.

    Raises
    ------
    PlanFileError
        If the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with explained("readable", f"{store.path}/{name}"):
        stream = store.open(name)
    with stream:
        try:
            found = pq.ParquetFile(stream, page_checksum_verification=True)
            there = map(found.read_row_group, range(found.num_row_groups))
            expected = (pa.Table.from_batches([rows]) for rows in rows_of(plan, epoch))
            same = all(a == b for a, b in zip_longest(there, expected))
            same = same and found.schema_arrow.equals(_schema(plan), check_metadata=True)
        except (pa.ArrowException, OSError):  # damaged
            same = False
    return "" if same else "other rows"


def check_pyarrow() -> None:
    """Raise `IndexPlanError` unless pyarrow is there."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        del pa, pq
    except ImportError as error:
        raise IndexPlanError(
            "pyarrow",
            "must be installed for the format 'parquet'",
            error,
            install("shards"),
        ) from error
