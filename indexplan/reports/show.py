"""Describe a plan, a step of it or a batch: in words, and as JSON types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from indexplan.answers import Shown, table
from indexplan.errors import IndexPlanError, counted, printable
from indexplan.files.read import Stored, computed
from indexplan.orders import Order
from indexplan.orders.columns import is_identity
from indexplan.orders.fields import nested
from indexplan.orders.mixture import Mixture
from indexplan.partition.account import between
from indexplan.partition.remainders import REMAINDERS
from indexplan.plan.plan import Plan, dict_of, layout_of
from indexplan.reports.shares_drawn import draws
from indexplan.seeds import EPOCH_STOP
from indexplan.shards.dataset import Dataset
from indexplan.shards.shards import SHARDS, Shards
from indexplan.stores.tables import LEAST

SHOWN = 12  # epochs, or ranks, of many
COUNTED = 2**22  # units of an epoch whose draws are counted, if they have to be drawn
LISTED = 8  # sources or shares of an order, of many
FIRST = 3  # epochs of a plan that is not stored


def show_batch(plan: Plan, where: dict[str, Any], dataset: Dataset | Shards | None) -> Shown:
    """Return a batch's indices, and the names of its files if the dataset has names.

    Where the order has bins, each has a line, or with names a paragraph; where it cuts samples,
    each index comes with the part that is read.
    """
    batch = plan.units(**where)
    indices = batch.samples.tolist()
    data: dict[str, Any] = {"indices": indices, "num_valid": batch.num_valid}
    bins, words = [(0, len(indices))], list(map(str, indices))
    if plan.order.deals_bins:
        data["offsets"] = batch.offsets.tolist()
        bins = list(pairwise(data["offsets"]))
    if batch.spans is not None:
        spans = data["spans"] = batch.spans.tolist()
        words = [f"{i}[{low}:{high}]" for i, (low, high) in zip(words, spans, strict=True)]
    names = [] if dataset is None else _names_of(indices, dataset)
    if not names:
        return Shown(data, "\n".join(" ".join(words[low:high]) for low, high in bins))
    data["names"] = names
    rows = [f"{word:>10}  {printable(name)}" for word, name in zip(words, names, strict=True)]
    return Shown(data, "\n\n".join("\n".join(rows[low:high]) for low, high in bins))


def show_step(plan: Plan, epoch: int, sub_epoch: int | None, step: int) -> Shown:
    """Return a step's size, its first ranks' batch sizes, its phase, and its cursor."""
    layout = layout_of(plan)
    of = layout.steps(epoch, sub_epoch)
    phase = layout.phase(of, layout.step(of, step))
    steps = {"start_step": step, "stop_step": step + 1}
    sizes = [
        plan.batch_sizes(epoch, sub_epoch, rank=rank, **steps).tolist()[0]
        for rank in range(min(plan.world_size or 0, SHOWN))
    ]
    data = {
        "step_size": plan.step_size(epoch, sub_epoch, step=step),
        "batch_sizes_of_first_ranks": sizes,
        "phase": phase.to_dict(),
        "cursor": plan.cursor(epoch, sub_epoch, step=step).to_dict(),
    }
    more = " ..." if (plan.world_size or 0) > SHOWN else ""
    words = (
        f"units over all ranks  {data['step_size']}\n"
        f"units of each rank    {' '.join(map(str, sizes)) or 'world_size is open'}{more}\n"
        f"phase                 {_in_words(phase.to_dict())}"
    )
    return Shown(data, words)


def show_plan(
    plan: Plan,
    stored: Stored | None,
    epoch: int | None,
    sub_epoch: int | None,
) -> Shown:
    """Return a plan's fields in words, and what is read of its epochs, units and groups.

    Unless the plan is stored, its first epochs are shown.
    """
    start = plan.start.epoch
    firsts = tuple(range(start, min(start + FIRST, EPOCH_STOP)))
    if stored is not None:
        firsts = stored.build.epochs
    epochs = firsts[:SHOWN] if epoch is None else (epoch,)
    num_more = 0 if epoch is not None or stored is None else len(firsts) - len(epochs)
    facts = [f"{name:<12} {words}" for name, words in _facts(plan, stored)]
    parts = [
        Shown(_data(plan, stored), "\n".join(facts)),
        _accounts(plan, epochs, sub_epoch, num_more),
        _draws(plan, epochs[0]),
    ]
    data = {name: value for part in parts for name, value in part.data.items()}
    return Shown(data, "\n\n".join(part.words for part in parts if part.words))


def _facts(plan: Plan, stored: Stored | None) -> Iterator[tuple[str, str]]:
    """Yield what the plan is and what is stored of it: the name of each fact, and its words."""
    fields = dict_of(plan)
    yield "order", _in_words(fields["order"])
    if isinstance(mixture := computed(plan.order), Mixture):
        yield from _facts_of_mixture(plan, mixture)
    yield "unit", _unit_in_words(plan.order)
    fields["remainder"] = f"{plan.remainder}: {REMAINDERS[plan.remainder].words}"
    yield from (
        (name, _in_words(value))
        for name, value in fields.items()
        if name not in ("partition", "order") and value is not None
    )
    yield "dataset", _dataset_in_words(None if stored is None else stored.build.dataset)
    yield "files", _files_in_words(stored)
    if stored is None and (words := _memory_in_words(plan.order)):
        yield "memory", words
    yield "fingerprint", plan.fingerprint


def _facts_of_mixture(plan: Plan, mixture: Mixture) -> Iterator[tuple[str, str]]:
    """Yield how evenly sources are mixed, and what epochs and steps have of them."""
    yield "shares", _within(mixture)
    if mixture.epoch_size != (together := _together(mixture)):
        words = (
            f"{mixture.epoch_size:,} {mixture.shares_of}, and so it stays where sources join; all "
            f"sources together have {together:,}, which Epochs(order, {together}) reads as an "
            'epoch, in a run of "spread" or "carry" from plan.cursor_at(place) on'
        )
        yield "epoch size", words
    if (composition := _composition(plan, mixture)) is not None:
        yield "each step", _composition_in_words(composition, mixture)


def _data(plan: Plan, stored: Stored | None) -> dict[str, Any]:
    """Return the same facts for programs."""
    data: dict[str, Any] = {"plan": dict_of(plan), "fingerprint": plan.fingerprint}
    data |= {"epochs": None, "num_bytes": None, "dataset": None}
    if stored is not None:
        dataset = stored.build.dataset
        data["epochs"] = list(stored.build.epochs)
        data["num_bytes"] = sum(stored.sizes.values())
        data["dataset"] = dataset and dataset.to_dict()
    if isinstance(mixture := computed(plan.order), Mixture):
        data |= {"within": mixture.within, "sizes_together": _together(mixture)}
        if (composition := _composition(plan, mixture)) is not None:
            data["composition"] = composition
    return data


def _memory_in_words(order: Order) -> str:
    """Return what the order's columns and tables take, if that is much; "" if not."""
    columns = order.columns.values()
    mapped = sum(column.array.nbytes for column in columns if column.path is not None)
    own = sum(column.array.nbytes for column in columns if column.path is None)
    tables = order.ip_table_bytes + sum(each.ip_table_bytes for each, _ in nested(order))
    if mapped + own + tables < LEAST:
        return ""
    words = [f"{(mapped + own + tables) / order.num_samples:.3g} bytes a sample"]
    if once := [f"columns {_mb(mapped)}"] * (mapped > 0) + [f"tables {_mb(tables)}"] * (tables > 0):
        words.append(f"once on each node: {', '.join(once)}")
    if own:
        words.append(f"in each process: columns {_mb(own)}, unless you pass paths of .npy files")
    return "; ".join(words)


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.0f} MB"


def _together(mixture: Mixture) -> int:
    return sum(source.num_units(0) for _, source in mixture.sources)


def _accounts(plan: Plan, epochs: tuple[int, ...], sub_epoch: int | None, num_more: int) -> Shown:
    """Return what becomes of each epoch's units, as a table; `num_more` epochs are not shown."""
    if not _is_sized(plan):
        accounts = []
        lines = ["world_size is open: to see steps, name one with --world-size"]
    else:
        accounts = [{"epoch": e, **plan.account(e, sub_epoch).to_dict()} for e in epochs]
        counted = ["steps", "read", "dropped", "padded"]
        if any(account["num_excluded"] for account in accounts):  # which most runs never do
            counted.insert(-1, "excluded")
        rows = [["epoch", *counted, "batches", "per rank"]]
        for account in accounts:
            sizes = between(account["min_batch_size"], account["max_batch_size"])
            each = between(account["min_per_rank"], account["max_per_rank"])
            counts = [f"{account[f'num_{name}']:,}" for name in counted]
            rows.append([str(account["epoch"]), *counts, sizes, each])
        widths = {"read": 9, "padded": 6, "batches": 8, "excluded": 8, "per rank": 8, "epoch": 5}
        lines = table(rows, least=tuple(widths.get(name, 7) for name in rows[0]))
    if num_more > 0:
        lines.append(f"   ... {num_more} more; show one with --epoch")
    return Shown({"accounts": accounts}, "\n".join(lines))


def _is_sized(plan: Plan) -> bool:
    """Return whether the plan's steps are known: not if they depend on an open world size."""
    return plan.world_size is not None or plan.batch_size is None


def _composition(plan: Plan, mixture: Mixture) -> dict[str, Any] | None:
    """Return what each full step reads of the sources, if the weights fix that, and whether so.

    At every multiple of the sum of shares counts are exact, so a step that holds whole multiples
    has one composition, as long as it begins at one. Only "carry" begins each step where the one
    before ended; else epochs, and their sub-epochs, have to hold whole steps.
    """
    sizes, phases = layout_of(plan).partition.sizes, mixture.weights
    if len(sizes) != 1 or len(mixture.names) == 1:
        return None
    (size,) = sizes
    if any(size % sum(shares) for _, shares in phases):
        return None
    whole = size * plan.sub_epochs
    fits = REMAINDERS[plan.remainder].crosses or mixture.epoch_size % whole == 0
    start = plan.start
    begin = start.epoch * mixture.epoch_size + start.position
    return {
        "size": size,
        "counts": [share * (size // sum(mixture.shares)) for share in mixture.shares],
        "exact": fits and all(place % size == 0 for place in (begin, *(at for at, _ in phases))),
        "epoch_size": mixture.epoch_size if fits else -(-mixture.epoch_size // whole) * whole,
    }


def _composition_in_words(composition: dict[str, Any], mixture: Mixture) -> str:
    counts, size = composition["counts"], composition["size"]
    words = " : ".join(map(str, counts[:LISTED])) + " : ..." * (len(counts) > LISTED)
    if composition["exact"]:
        return f"exactly {words}"
    if composition["epoch_size"] != mixture.epoch_size:
        cure = f"epochs hold whole steps: epoch_size={composition['epoch_size']}"
    else:
        cure = f"the run and all phases of weights begin at multiples of {size:,} units"
    return f"not always {words}, which needs that {cure}"


def _within(order: Mixture) -> str:
    last = " in the last phase" * (len(order.weights) > 1)
    return f"each source stays within {order.within:.2f} {order.shares_of} of its own{last}"


def _draws(plan: Plan, epoch: int) -> Shown:
    """Return the draws of an epoch, if the order has groups."""
    order = plan.order
    if not (order.group_names and (_is_sized(plan) or not REMAINDERS[plan.remainder].leaves)):
        return Shown({}, "")
    num, most = order.num_units(epoch), COUNTED // 256 if order.deals_bins else COUNTED
    if num > most and order.ip_counted((epoch, 0), (epoch, 0)) is None:
        said = f"not counted, as {counted(num, 'unit')} would be drawn"
        return Shown({"draws": None}, f"draws: {said}; ip.draws(plan, stop=...) counts some")
    try:
        drawn = draws(plan, epoch)
    except IndexPlanError as error:  # of samples that belong to several groups
        return Shown({"draws": {"error": str(error)}}, f"draws: {error}")
    return Shown({"draws": drawn}, str(drawn))


def _in_words(value: Any) -> str:
    """Write a field of a plan: a number, a column, an order or a phase, or a list of these."""
    if is_identity(value):
        return f"{counted(value['length'], 'number')} of sha256 {value['sha256'][:12]}"
    if isinstance(value, Mapping):
        fields = [f"{k} {_in_words(v)}" for k, v in value.items() if k != "algorithm"]
        return printable(f"{value.get('algorithm', '')}({', '.join(fields)})")
    if isinstance(value, list):
        more = [f"... {len(value) - LISTED} more"] * (len(value) > LISTED)
        return f"[{', '.join([*map(_in_words, value[:LISTED]), *more])}]"
    return str(value)


def _unit_in_words(order: Order) -> str:
    """Return what the counts of units below are counts of."""
    if not order.deals_bins:
        return "one sample (this order makes no bins)"
    of = "samples, or parts of samples," if order.traits.cuts_samples else "samples"
    return f"a bin: {of} that are read together, by one rank in one step"


def _names_of(indices: list[int], dataset: Dataset | Shards) -> list[str]:
    """Return what samples are called: by their files, or by their rows in shards."""
    if isinstance(dataset, Shards):
        shards, rows = (each.tolist() for each in dataset.locate(indices))
        places = zip(shards, rows, strict=True)
        return [f"{dataset.names[shard]} row {row}" for shard, row in places]
    return [dataset.names[index] for index in indices] if dataset.names else []


def _files_in_words(stored: Stored | None) -> str:
    if stored is None:
        return "none (the plan isn't stored)"
    num_epochs, num_bytes = len(stored.build.epochs), sum(stored.sizes.values())
    return f"{counted(num_epochs, 'epoch')}, {counted(num_bytes, 'byte')}"


def _dataset_in_words(dataset: Dataset | None) -> str:
    if dataset is None:
        return "none remembered"
    noun, more = "row", f", {dataset.header}"
    if dataset.pattern:
        noun, more = "file", f" by {dataset.pattern}"
    if dataset.kind.endswith(SHARDS):
        noun, more = "sample", f" in {dataset.kind}"
    num_bytes = counted(dataset.num_bytes, "byte")
    return printable(f"{counted(dataset.num_samples, noun)}{more}, {num_bytes}")
