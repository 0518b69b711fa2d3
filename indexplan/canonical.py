"""Canonical JSON, of which fingerprints are computed, and strict reading of JSON objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NoReturn

from indexplan.errors import IndexPlanError, invalid, shown

DEEPEST = 50
# Most brackets, colons and quotes in a JSON text: the result takes at most some 80 bytes for each.
MOST_MARKS = 2**20
COMMAS = 4  # as many as marks, times this: 25 million numbers would take 12 s to read and refuse


def canonical_json(data: Any) -> str:
    """Return the one JSON text of `data`: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


AS_WRITTEN = "pass what to_json returned, unchanged"
BY_WHOM = "restore what was written, or read it with the version of indexplan that wrote it"


def parse_json_object(
    what: str, text: str | bytes, cure: str = AS_WRITTEN, most_marks: int = MOST_MARKS
) -> dict[str, Any]:
    """Return the JSON object in `text`; `cure` goes into the message if there is none.

    Raises
    ------
    IndexPlanError
        If the text is not JSON, is not an object, names a field twice, holds NaN or infinity, is
        nested too deeply, or has more than `most_marks` (2**20) brackets, colons and quotes, or
        four times as many commas.
    """
    if not isinstance(text, str | bytes):
        raise invalid(what, "JSON text", text, cure)
    if (count := _num_marks(text)) > most_marks:
        raise IndexPlanError(
            what, f"must hold at most {most_marks} brackets, colons and quotes", count, cure
        )
    if (count := text.count(b"," if isinstance(text, bytes) else ",")) > COMMAS * most_marks:  # type: ignore[arg-type]
        raise IndexPlanError(what, f"must hold at most {COMMAS * most_marks} commas", count, cure)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            got = shown([name for name, _ in pairs])
            raise IndexPlanError(what, "must name each field once", got, cure)
        return fields

    def refuse(constant: str) -> NoReturn:
        raise invalid(what, "JSON without NaN and infinity", constant, cure)

    def finite(number: str) -> float:
        return value if isfinite(value := float(number)) else refuse(number)

    try:
        data = json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=finite)
    except IndexPlanError:
        raise
    except (ValueError, RecursionError) as error:
        got = f"{_short(text)!r} ({error})"
        raise IndexPlanError(what, "must be JSON", got, cure) from None
    if not isinstance(data, dict):
        raise invalid(what, "a JSON object", data, cure)
    level: list[Any] = [data]
    for _ in range(DEEPEST):
        if not level:  # most are flat: fifty empty lists took 20 us of a resume
            break
        values = (each.values() if isinstance(each, dict) else each for each in level)
        level = [value for each in values for value in each if isinstance(value, dict | list)]
    if level:  # later recursions through it would overflow the stack
        raise IndexPlanError(what, f"must nest at most {DEEPEST} levels deep", "more", cure)
    return data


def check_fields(
    what: str, data: Mapping[str, Any], names: Iterable[str], cure: str = BY_WHOM
) -> None:
    """Raise `IndexPlanError` unless `data` has exactly the fields `names`."""
    expected = set(names)
    if missing := sorted(expected - set(data)):
        got = f"only {shown(sorted(data, key=str))}"
        raise IndexPlanError(what, f"must have the fields {missing}", got, cure)
    if unknown := sorted(set(data) - expected, key=str):
        rule = f"must have only the fields {sorted(expected)}"
        raise IndexPlanError(what, rule, shown(unknown), cure)


def _num_marks(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return sum(map(text.count, (b"[", b"{", b":", b'"')))
    return sum(map(text.count, '[{:"'))


def _short(text: str | bytes) -> str | bytes:
    return text if len(text) <= 60 else text[:60]
