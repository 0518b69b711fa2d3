"""What a command was given in place of a plan or a ledger, and the command that takes it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.format import MANIFEST

LOOKED_AT = 2**20  # bytes of a file's first line, which tell what it is
NO_PLAN, NO_LEDGER = "must be a plan directory", "must be a ledger that a run has written"
LEDGER, DIRECTORY, SPEC = "the ledger of a run", "a plan directory", "a plan in JSON"


def kind_of(path: str) -> str:
    """Return what is at a path, in words, as far as its first line tells."""
    if os.path.isdir(path):  # noqa: PTH112 (which raises nothing for any text)
        return DIRECTORY if (Path(path) / MANIFEST).is_file() else "a folder"
    if not os.path.isfile(path):  # noqa: PTH113 (likewise)
        return "no file"
    try:
        with Path(path).open("rb") as file:
            line = file.readline(LOOKED_AT)
        found = json.loads(line)
        if {"check", "kind", "previous"} <= found.keys():
            return LEDGER
        return SPEC if "partition" in found else "a file of something else"
    except (OSError, ValueError, AttributeError, RecursionError):
        return "a file of something else" if Path(path).stat().st_size else "an empty file"


@contextmanager
def in_place_of_a_plan(path: str) -> Iterator[None]:
    """Say what is at a path that an error finds no plan in, and what takes it."""
    try:
        yield
    except PlanFileError as error:
        if error.rule != NO_PLAN:
            raise
        if (kind := kind_of(path)) == LEDGER:
            cure = (
                f"ask it with `indexplan ledger {path}`, or write its plan with "
                f"`indexplan replay {path} --step 0 --output run.json`"
            )
        elif kind == SPEC:
            named = Path(path).suffix == ".json"  # so the verb takes directories only
            cure = str(error.cure) if named else "give it a name that ends in .json"
        elif kind == "a folder":
            kind = str(error.got)
            made = f"indexplan build {path}.plan --dataset {path} --batch-size 32"
            cure = f"check the path, or build a plan of its files with `{made}`"
        else:
            raise
        raise PlanFileError(path, error.rule, kind, cure) from error


@contextmanager
def in_place_of_a_ledger(path: str) -> Iterator[None]:
    """Say what is at a path that an error finds no ledger in, and what takes it."""
    kind = kind_of(path)
    if kind in (DIRECTORY, SPEC):
        cure = f"look at it with `indexplan show {path}`"
        if kind == SPEC and Path(path).suffix != ".json":
            cure = "give it a name that ends in .json, and look at it with `indexplan show`"
        raise PlanFileError(path, NO_LEDGER, kind, cure)
    if kind == "a folder":
        raise PlanFileError(path, NO_LEDGER, kind, "name a file in it that a run wrote")
    try:
        yield
    except IndexPlanError as error:
        if kind != "a file of something else" or _begun(path):
            raise
        raise PlanFileError(path, NO_LEDGER, kind, "check the path") from error


def _begun(path: str) -> bool:
    """Return whether a file begins as a ledger does, so that it may be a damaged one."""
    with Path(path).open("rb") as file:
        return file.read(10) == b'{"check":"'
