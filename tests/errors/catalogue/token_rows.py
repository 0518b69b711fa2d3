"""Errors of rows of tokens, as torchtitan takes them."""

from __future__ import annotations

from indexplan_torch import Piece
from indexplan_torch.token_rows import TokenRows
from tests.errors.catalogue.made import Case

DOCUMENTS = [[1, 10, 11, 2], [1, 20, 2]]

CASES: list[Case] = [
    ("rows of nothing", lambda: TokenRows(DOCUMENTS, 0)),
    ("rows filled with what is no token", lambda: TokenRows(DOCUMENTS, 4, pad=-100)),
    ("a window of another length", lambda: TokenRows(DOCUMENTS, 4)[[Piece(0, 0, 3)]]),
    ("a window of a document's last token", lambda: TokenRows(DOCUMENTS, 4)[[Piece(0, 0, 4)]]),
    ("documents that fill more than a row", lambda: TokenRows(DOCUMENTS, 4)[[0, 1]]),
]
