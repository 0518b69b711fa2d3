"""export: write what each rank reads, as arrays or tables, for readers without this library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal, get_args

import numpy as np

from indexplan.errors import Cure, invalid
from indexplan.files import columns
from indexplan.files.format import SLAB_UNITS, header
from indexplan.files.rows import check_pyarrow, table_of
from indexplan.files.saving import Saved
from indexplan.keywords import named
from indexplan.orders.base import Int64
from indexplan.plan.plan import Plan, check_plan, columns_of, dict_of, layout_of
from indexplan.seeds import check_epochs
from indexplan.stores.agree import claim, put
from indexplan.stores.open import store_of

EXPORT = "export.json"
Format = Literal["npy", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
Files = dict[str, Callable[[], Iterator[memoryview]]]  # the bytes of each file, by its name


@named
def export(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    epochs: Iterable[int] = range(1),
    format: Format = "npy",  # noqa: A002 (the word that every writer of files has for it)
) -> Saved:
    """Write the indices that each rank reads, in order of reading, as `.npy` files or as tables.

    Use it for loaders that take arrays of indices, and to look at a plan with other tools:
    docs/files.md describes the files, and how loaders read them. Memory does not grow with the
    plan, except for 16 bytes for each step of a rank. You may kill it and run it again: existing
    files are compared with what belongs in them, and never replaced. More epochs may be
    exported to the same folder later. The columns of the order are written too, as in a plan
    directory: `Plan.from_json(json.dumps(plan), columns=...)` opens the `plan` of `export.json`.

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
    if format == "parquet":
        check_pyarrow()
    files: Files = columns.files_of(columns_of(plan))
    for epoch in numbers:
        if format == "npy":
            files |= _arrays(plan, epoch)
        else:
            rows = partial(table_of, plan, epoch, _sub_epochs(plan, epoch))
            files[f"epoch-{epoch:05d}.parquet"] = rows
    root = store_of(out, "out")
    said = {
        "format": "indexplan-export",
        "format_version": 1,
        "dtype": _dtype(plan),
        "plan": dict_of(plan),
        "plan_fingerprint": plan.fingerprint,
    }
    what = "an export of the same plan"
    claim(root, EXPORT, what, said, f"must be new, empty or {what}")
    rule = "must hold what the plan deals"
    kept = sum(put(root, name, blocks, rule, "export") for name, blocks in files.items())
    root.tidy([EXPORT, *files])
    return Saved(
        path=root.path,
        num_bytes=sum(size or 0 for size in root.sizes(files)),
        num_written=len(files) - kept,
        num_kept=kept,
        fingerprint=plan.fingerprint,
    )


def _dtype(plan: Plan) -> str:
    """Return the indices' type: 4 bytes where they fit."""
    return "<u4" if plan.order.num_samples <= 2**32 else "<i8"


def _sub_epochs(plan: Plan, epoch: int) -> range:
    """Return the sub-epochs of an epoch that are not finished."""
    first = plan.start.sub_epoch if epoch == plan.start.epoch else 0
    layout_of(plan).steps(epoch, first)  # raises if all of them are
    return range(first, plan.sub_epochs)


def _arrays(plan: Plan, epoch: int) -> Files:
    """Return the files of indices, and those that say where each step starts among them."""
    files: Files = {}
    for sub_epoch in _sub_epochs(plan, epoch):
        folder = f"epoch-{epoch:05d}"
        if plan.sub_epochs > 1:
            folder += f"/sub-epoch-{sub_epoch:05d}"
        for rank in range(layout_of(plan).world_size):
            where = plan, epoch, sub_epoch, rank
            files[f"{folder}/rank-{rank:05d}.npy"] = partial(_indices, *where)
            files[f"{folder}/rank-{rank:05d}.steps.npy"] = partial(_steps, *where)
    return files


def _indices(plan: Plan, epoch: int, sub_epoch: int, rank: int) -> Iterator[memoryview]:
    """Yield the bytes of a rank's file of indices, at most a slab or one batch at a time."""
    ends = _ends(plan, epoch, sub_epoch, rank)
    yield memoryview(header(_dtype(plan), int(ends[-1])))
    start, stop = plan.steps(epoch, sub_epoch).start, len(ends) - 1
    while start < stop:
        until = int(np.searchsorted(ends, ends[start] + SLAB_UNITS, "right")) - 1
        until = max(start + 1, until)
        stretch = plan.indices(epoch, sub_epoch, rank=rank, start_step=start, stop_step=until)
        yield memoryview(stretch.astype(_dtype(plan)).tobytes())  # no cast: it refuses empty ones
        start = until


def _steps(plan: Plan, epoch: int, sub_epoch: int, rank: int) -> Iterator[memoryview]:
    """Yield the bytes of a rank's file of steps."""
    ends = _ends(plan, epoch, sub_epoch, rank)
    yield memoryview(header("<i8", len(ends)))
    yield memoryview(ends.astype("<i8").tobytes())


def _ends(plan: Plan, epoch: int, sub_epoch: int, rank: int) -> Int64:
    """Return where each step's batch starts, and the end; batches of finished steps are empty."""
    steps = plan.steps(epoch, sub_epoch)
    ends = np.zeros(steps.stop + 1, np.int64)
    np.cumsum(plan.batch_sizes(epoch, sub_epoch, rank=rank), out=ends[steps.start + 1 :])
    return ends
