"""Tables of an export: what every rank reads in an epoch, as a Parquet file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from indexplan.errors import IndexPlanError, install
from indexplan.orders.base import Int64
from indexplan.parts import split
from indexplan.plan.plan import Plan, layout_of

ROWS = 2**18  # of a row group, about: 17 MB; more only if one step has more


def table_of(plan: Plan, epoch: int, sub_epochs: range) -> Iterator[memoryview]:
    """Yield the bytes of a Parquet file with an epoch's rows, row group by row group.

    Rows come in the sequence of steps, then ranks, then slots.
    """
    import pyarrow.parquet as pq

    sink, schema = _Sink(), _schema(plan)
    options: Any = {"compression": "zstd", "write_page_checksum": True}
    with pq.ParquetWriter(sink, schema, **options) as writer:
        for sub_epoch, start, stop in _stretches(plan, epoch, sub_epochs):
            rows = _rows(plan, epoch, sub_epoch, start, stop, schema)
            writer.write_batch(rows, row_group_size=2**31 - 1)  # one row group each
            yield from sink.fetch()
    yield from sink.fetch()


def _stretches(plan: Plan, epoch: int, sub_epochs: range) -> Iterator[tuple[int, int, int]]:
    """Yield stretches of steps with about as many rows as a row group has."""
    order = plan.order
    for sub_epoch in sub_epochs:
        steps = layout_of(plan).steps(epoch, sub_epoch)
        in_unit = max(1, order.num_samples // max(1, steps.num_units)) if order.deals_bins else 1
        for span in steps.spans:  # in which all batches have about one size
            many = max(1, ROWS // (in_unit * (span.length // span.num_steps + 1)))
            end = span.step + span.num_steps
            for start in range(max(span.step, steps.first_step), end, many):
                yield sub_epoch, start, min(end, start + many)


def _rows(plan: Plan, epoch: int, sub_epoch: int, start: int, stop: int, schema: Any) -> Any:
    """Return the rows of some whole steps, a pyarrow.RecordBatch."""
    import pyarrow as pa

    world_size = layout_of(plan).world_size
    stretch: Any = {"start_step": start, "stop_step": stop, "units": True}
    drawn = [plan.batches(epoch, sub_epoch, rank=rank, **stretch) for rank in range(world_size)]
    batches = [batch for step in zip(*drawn, strict=True) for batch in step]
    sizes = np.array([len(batch.samples) for batch in batches])
    step, rank = np.divmod(np.arange(len(batches)), world_size)
    # which unit of its batch each sample is in, batch by batch
    units = [np.repeat(np.arange(len(batch)), np.diff(batch.offsets)) for batch in batches]
    micro = [
        _micro_batches(len(batch), batch.inner_counts)[of]
        for batch, of in zip(batches, units, strict=True)
    ]
    unit = np.concatenate(units)
    columns = {
        "epoch": np.full(len(unit), epoch),
        "sub_epoch": np.full(len(unit), sub_epoch),
        "step": np.repeat(start + step, sizes),
        "rank": np.repeat(rank, sizes),
        "micro_batch": np.concatenate(micro),
        "bin": unit,  # which the schema leaves out where there are no bins
        "slot": np.arange(len(unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes),
        "index": np.concatenate([batch.samples for batch in batches]),
        "padded": unit >= np.repeat([batch.num_valid for batch in batches], sizes),
    }
    arrays = [pa.array(columns[name]) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


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


def check_pyarrow() -> None:
    """Raise `IndexPlanError` unless pyarrow is there."""
    try:
        import pyarrow.parquet  # noqa: F401 (only whether it is there)
    except ImportError as error:
        rule = "must be installed for the format 'parquet'"
        raise IndexPlanError("pyarrow", rule, error, install("shards")) from error
