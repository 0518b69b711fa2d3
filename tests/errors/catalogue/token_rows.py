"""Errors of rows of tokens, as torchtitan takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from indexplan_torch import Piece, PlanLoader
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


# the cures, followed

LENGTHS = np.array([len(document) for document in DOCUMENTS])


def read(order: ip.Order, length: int = 4, **options: Any) -> None:
    """Read the rows of an order of the documents."""
    assert list(PlanLoader(TokenRows(DOCUMENTS, length, **options), ip.Plan(order, batch_size=1)))


def windows() -> None:
    """Read windows and packed rows of as many inputs as a row has."""
    read(ip.DocumentWindows(LENGTHS - 1, 4, overlap=0))
    read(ip.Packed(LENGTHS - 1, 4))


CURED: dict[str, Callable[[], Any]] = {
    "rows of nothing": lambda: read(ip.Packed(LENGTHS - 1, 4), length=4),
    "rows filled with what is no token": lambda: read(ip.Packed(LENGTHS - 1, 4), pad=0),
    "a window of another length": windows,
    "a window of a document's last token": windows,
    "documents that fill more than a row": windows,
}
