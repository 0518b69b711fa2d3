"""Rows of tokens as torchtitan trains on them: inputs, the position of each, and labels."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad
from torch.utils.data import Dataset

from indexplan import IndexPlanError
from indexplan.errors import counted, integer
from indexplan.keywords import named
from indexplan_torch.arguments import check_by_index
from indexplan_torch.bins import CUT, SEQ_LENS, Bins, join, position_ids
from indexplan_torch.causal import LABELS, UNTRAINED, tokens_of
from indexplan_torch.items import Piece


@named
class TokenRows(Dataset[Any]):
    """A dataset of rows of equal length, with the fields that torchtitan's trainer takes.

    In each document every token but the first is a label, and the token before it is the input. So
    a document of n tokens has n - 1 of both, and none crosses the end of a document, like in
    torchtitan's own datasets. Pass these lengths to the order:
    `DocumentWindows(lengths - 1, length, overlap=0)` cuts the same rows as torchtitan from the same
    documents, and `Packed(lengths - 1, length)` fills rows with whole documents.

    Parameters
    ----------
    tokens : torch.utils.data.Dataset
        Map-style, of documents, in which a beginning and an end token count like others: each a row
        of tokens, or a dict of "input_ids" and, if not all are trained on, "labels", as many, with
        -100 where a token is no label. For `TokenWindows`, one long row, such as a memory-mapped
        array; a window is then one text, because nothing marks the ends of its documents.
    length : int
        Inputs of a row, from 1: torchtitan's `seq_len`.
    pad : int, default 0
        The input that fills a row of `Packed`; its labels are -100.

    Raises
    ------
    IndexPlanError
        If length or pad is out of range. On reading: if a unit of the plan is not a row of this
        length, or as `Bins` and `join` do.

    Examples
    --------
    >>> from indexplan_torch import Piece
    >>> from indexplan_torch.token_rows import TokenRows
    >>> rows = TokenRows([[1, 10, 11, 2], [1, 20, 2], [1, 30, 31, 32, 2]], length=4)
    >>> window = [Piece(0, 0, 3), Piece(1, 0, 1)]  # of DocumentWindows([3, 2, 4], 4, overlap=0)
    >>> fields, labels = rows[window]
    >>> fields["input"], fields["positions"], labels
    (tensor([ 1, 10, 11,  1]), tensor([0, 1, 2, 0]), tensor([10, 11,  2, 20]))
    >>> fields, labels = rows[[1]]  # a bin of Packed: one whole document, and what fills the row
    >>> fields["input"], labels
    (tensor([ 1, 20,  0,  0]), tensor([  20,    2, -100, -100]))
    """

    def __init__(self, tokens: Any, length: int, *, pad: int = 0) -> None:
        check_by_index(tokens)
        self.tokens = tokens
        self.length = integer("length", length, 1, 2**62, "pass torchtitan's seq_len")
        self.pad = integer("pad", pad, 0, 2**62, "pass a token of the vocabulary")
        self._documents = Bins(tokens, join)

    def __len__(self) -> int:
        """Return the documents, or the tokens of one long row."""
        return len(self.tokens)

    def __getitem__(self, asked: Any) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return the row of a unit: of a window's first token, of pieces, or of whole documents.

        Returns
        -------
        fields, labels
            "input" and "positions" of the fields, and labels: int64, shape (length,). Positions
            count from 0 in each part of a document, and in what fills the row.
        """
        if not isinstance(asked, list):
            return self._row(join([self.tokens[asked : asked + self.length + 1]]))
        if not asked or not isinstance(asked[0], Piece):
            return self._row(self._documents[asked], fill=True)
        if (num := sum(piece.stop - piece.start for piece in asked)) != self.length:
            raise self._of_another_length(num)
        # the label of a piece's last input is the token after the piece
        longer = [piece._replace(stop=piece.stop + 1) for piece in asked]
        try:
            return self._row(self._documents[longer])
        except IndexPlanError as error:
            if error.what != CUT:
                raise
            cure = "tell the order len(document) - 1 of each document"
            raise IndexPlanError(CUT, error.rule, error.got, cure) from None

    def _row(
        self, joined: dict[str, torch.Tensor], *, fill: bool = False
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return the fields and labels of documents, or of parts of some, that lie end to end."""
        tokens, sizes = tokens_of(joined), joined[SEQ_LENS]
        sizes = sizes[sizes > 0]
        ends = sizes.cumsum(0)
        is_input = is_label = torch.ones(len(tokens), dtype=torch.bool)
        is_input = is_input.index_fill(0, ends - 1, False)
        is_label = is_label.index_fill(0, ends - sizes, False)
        inputs, labels = tokens[is_input].long(), joined.get(LABELS, tokens)[is_label].long()
        missing = self.length - len(inputs)
        if missing < 0 or (missing and not fill):
            raise self._of_another_length(len(inputs))
        positions = position_ids(torch.cat([sizes - 1, sizes.new_tensor([missing])]))
        fields = {"input": pad(inputs, (0, missing), value=self.pad), "positions": positions}
        return fields, pad(labels, (0, missing), value=UNTRAINED)

    def _of_another_length(self, num: int) -> IndexPlanError:
        orders = (
            f"DocumentWindows(lengths - 1, {self.length}, overlap=0), TokenWindows(num_tokens, "
            f"{self.length}) or Packed(lengths - 1, {self.length})"
        )
        rule = f"must have {counted(self.length, 'input')}, the length of TokenRows"
        return IndexPlanError("a row", rule, str(num), f"make the order with {orders}")
