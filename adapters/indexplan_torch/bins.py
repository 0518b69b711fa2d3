"""Read whole bins: a dataset that takes bins, and a function that joins a bin's samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from indexplan import IndexPlanError
from indexplan.errors import invalid, shown
from indexplan.keywords import named
from indexplan_torch.arguments import check_by_index
from indexplan_torch.items import Piece, pieces

OWN_FIELDS = "return dicts of tensors with an entry for each token"
OWN = f"{OWN_FIELDS}, or pass a join of your own"
CUT = "a sample that is cut"
TOKENS, POSITIONS, SEQ_LENS = "input_ids", "position_ids", "seq_lens"


def join(samples: Sequence[Any]) -> dict[str, torch.Tensor]:
    """Join samples into one row of tokens, with the length of each.

    `Bins` calls it for each bin. As a loader's `collate_fn`, it joins a batch of bins into one row.
    For models of Hugging Face, use `join_causal` instead.

    Parameters
    ----------
    samples : sequence of mapping, tensor, array or list
        Each is a dict of fields, or a row of tokens, short for {"input_ids": row}. A field
        has an entry for each token of its sample, or is one number for the whole sample.

    Returns
    -------
    dict of torch.Tensor
        The fields, each concatenated; "position_ids", int64, shape (tokens,), which count from 0 in
        each sample (the samples' own, if they have them); and "seq_lens", int64, shape (samples,):
        how many tokens each sample has.

    Raises
    ------
    IndexPlanError
        If there are no samples, samples have different fields, or a field is neither a number nor
        as long as its sample. A sample's length is that of "input_ids", or, without them, of the
        first field that is not a number.

    Notes
    -----
    A model that shifts labels itself, like those of Hugging Face, would learn to predict the first
    token of a sample from the sample before it. To prevent that, have your dataset set each
    sample's first label to -100.

    Examples
    --------
    >>> from indexplan_torch import join
    >>> for name, field in join([[5, 6, 7], [8, 9]]).items():
    ...     print(name, field.tolist())
    input_ids [5, 6, 7, 8, 9]
    position_ids [0, 1, 2, 0, 1]
    seq_lens [3, 2]
    """
    rows = [_fields(sample) for sample in samples] if isinstance(samples, list | tuple) else []
    if not rows or not rows[0]:
        raise invalid("samples", "a list of at least one, with fields, to be joined", samples, OWN)
    names = list(rows[0])
    other = next((list(row) for row in rows if row.keys() != rows[0].keys()), None)
    if other is not None:
        raise IndexPlanError(
            "samples of a bin", "must have the same fields", f"{names} and {other}", OWN
        )
    sizes = torch.cat([_seq_lens(row) for row in rows])
    joined = {name: _cat([_row(row[name]) for row in rows]) for name in names}
    joined.setdefault(POSITIONS, position_ids(sizes))
    return {**joined, SEQ_LENS: sizes}


@named
class Bins(Dataset[Any]):
    """A dataset that returns whole bins: `bins[[3, 8]]` is `join([dataset[3], dataset[8]])`.

    Wrap your dataset in it if the plan's order has bins: `PlanLoader(Bins(dataset), plan)`. A
    batch is then a list of bins, and a worker joins each into one row. `len(bins)` is the number
    of samples in the dataset.

    If the order cuts samples, like `DocumentWindows`, each sample is read whole, and the requested
    part is cut out of its fields: `bins[[Piece(3, 0, 9)]]`. Fields that are a number or text stay
    as they are. If your dataset can read parts itself, you don't need `Bins`: let the dataset take
    lists of `Piece`.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style. If it has `__getitems__`, that is called once for each bin.
    join : callable, default indexplan_torch.join
        Turns a list of samples into one item. torch.utils.data.default_collate stacks them; `list`
        leaves them as they are.

    Raises
    ------
    IndexPlanError
        If the dataset is not map-style, or join is not callable. On reading: if the index is not a
        bin, or a sample to be cut has too few tokens, or fields of different lengths.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import Bins, PlanLoader
    >>> order = ip.ClassBatches([0, 0, 1, 1], classes=2, per_class=1, epoch_size=2)
    >>> texts = [[10], [20, 21], [30], [40, 41, 42]]
    >>> bins = Bins(texts)
    >>> bins[[1, 3]]["input_ids"]
    tensor([20, 21, 40, 41, 42])
    >>> row = next(iter(PlanLoader(bins, ip.Plan(order, batch_size=1))))
    >>> sorted(row)
    ['input_ids', 'position_ids', 'seq_lens']
    """

    def __init__(self, dataset: Any, join: Callable[[list[Any]], Any] = join) -> None:
        check_by_index(dataset)
        if not callable(join):
            raise invalid(
                "join",
                "a function of a list of samples",
                join,
                "leave it out to concatenate their fields",
            )
        self.dataset = dataset
        self.join = join

    def __len__(self) -> int:
        """Return the number of samples in the dataset."""
        return len(self.dataset)

    def __getitem__(self, asked: Any) -> Any:
        """Return a bin's samples, joined; for an inner batch (a list of bins), a list of these."""
        if not isinstance(asked, list | np.ndarray):
            raise invalid(
                "a bin",
                "a list of what the dataset is asked for",
                asked,
                "read Bins through PlanLoader, with a plan whose order deals bins",
            )
        if not len(asked) or isinstance(asked[0], list):  # an inner batch may have no bins
            return [self[each] for each in asked]
        if isinstance(asked, np.ndarray) and asked.ndim > 1:
            asked = pieces(asked)
        if not isinstance(asked[0], Piece):
            return self.join(self._read(asked))
        samples = self._read([each.sample for each in asked])
        return self.join([_part(*each) for each in zip(samples, asked, strict=True)])

    def _read(self, asked: Any) -> Any:
        """Return samples, in one call if the dataset has `__getitems__`."""
        together = getattr(self.dataset, "__getitems__", None)
        return together(asked) if together is not None else [self.dataset[each] for each in asked]


def position_ids(sizes: torch.Tensor) -> torch.Tensor:
    """Return the position of each token in its sample; int64, shape (tokens,)."""
    starts = sizes.cumsum(0) - sizes
    positions = torch.arange(int(sizes.sum()), device=sizes.device)
    return positions - starts.repeat_interleave(sizes)


def _part(sample: Any, piece: Piece) -> Any:
    """Cut a part out of a sample: out of a row of tokens, or each field with entries per token."""
    fields = sample if isinstance(sample, Mapping) else {TOKENS: sample}
    if isinstance(sample, tuple):  # of rows, as in some datasets, or of tokens
        fields = {}
    sizes = {
        name: size for name, each in fields.items() if (size := _num_entries(each)) is not None
    }
    if not sizes or len({*sizes.values()}) > 1 or min(sizes.values()) < piece.stop:
        raise IndexPlanError(
            CUT,
            "must have fields of one length, at least as long as the plan's order was told",
            f"{sizes or shown(sample)} entries, to be cut at {piece.stop}",
            "pass the order the lengths of this dataset's samples" if sizes else OWN_FIELDS,
        )
    cut = {name: fields[name][piece.start : piece.stop] for name in sizes}
    return {**fields, **cut} if isinstance(sample, Mapping) else cut[TOKENS]


def _num_entries(field: Any) -> int | None:
    """Return how many entries a field has; None for a single value, such as a number or text."""
    if isinstance(field, str | bytes):
        return None
    try:
        return len(field)
    except TypeError:  # a number, or a tensor of one
        return None


def _fields(sample: Any) -> dict[str, torch.Tensor]:
    """Return a sample's fields as tensors."""
    if isinstance(sample, Mapping):
        return {name: _tensor(name, value) for name, value in sample.items()}
    row = _tensor(TOKENS, sample)
    if isinstance(sample, tuple) or (isinstance(sample, list) and row.dim() > 1):
        raise invalid("a sample", "a dict of fields, or a row of tokens, to be joined", sample, OWN)
    return {TOKENS: row}


def _cat(rows: list[torch.Tensor]) -> torch.Tensor:
    """Concatenate rows, in the dtype of those that are not empty, because `[]` has none."""
    return torch.cat([row for row in rows if len(row)] or rows[:1])


def _tensor(name: Any, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    try:
        if isinstance(value, range):  # torch would never finish one that memory cannot hold
            value = np.arange(value.start, value.stop, value.step)
        if isinstance(value, np.ndarray):
            return torch.from_numpy(np.array(value))  # a copy: it may be mapped and read-only
        return torch.tensor(value)
    except Exception:  # anything that torch or a user's class raises
        raise IndexPlanError(
            f"the field {shown(name)}", "must hold numbers, to be joined", shown(value), OWN
        ) from None


def _row(field: torch.Tensor) -> torch.Tensor:
    return field if field.dim() else field.reshape(1)


def _seq_lens(row: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return how many tokens a sample has, or each of them if it was joined from several."""
    long = {name: len(field) for name, field in row.items() if field.dim()}
    if SEQ_LENS in long:
        sizes = row[SEQ_LENS]
        right = {int(sizes.sum()), len(sizes)}
    else:
        right = {long[TOKENS] if TOKENS in long else next(iter(long.values()), 0)}
        sizes = torch.tensor([*right])
    stray = next((name for name, length in long.items() if length not in right), None)
    if stray is not None or not long:
        raise IndexPlanError(
            "each field of a sample",
            "must be a number, or have as many entries as its tokens",
            long or "numbers only",
            OWN,
        )
    return sizes
