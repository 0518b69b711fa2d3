"""The store that a path or a URL names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from indexplan.errors import path_text
from indexplan.stores.folder import Folder
from indexplan.stores.store import Store


def store_of(path: str | os.PathLike[str], what: str = "path") -> Store:
    """Return the store that a path or a URL names.

    Raises
    ------
    IndexPlanError
        If it is not a path, or a URL with credentials or of a kind that fsspec cannot read here.
    """
    folder = folder_of(path, what)
    if folder is None:
        from indexplan.stores.remote import Remote  # imported only if needed

        return Remote(os.fspath(path))
    return Folder(folder)


def folder_of(path: str | os.PathLike[str], what: str = "path") -> Path | None:
    """Return the folder that a path or a file:// URL names; None for another URL.

    Raises
    ------
    IndexPlanError
        If it is neither.
    """
    text = path_text(what, path, "pass where the directory is, such as run.plan")
    if re.match(r"(?!file://)[A-Za-z][\w+.-]*(::.*)?://", text):
        return None
    return Path(text.removeprefix("file://"))
