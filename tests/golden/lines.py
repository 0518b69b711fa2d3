"""How a file of known answers is written, a case on a line, and how tests read it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
CRC = "crc32_of_all_as_little_endian_int64"


def lines(head: dict[str, Any], name: str, cases: Iterable[Any]) -> str:
    """Return JSON text: what is in the head, then the cases under their name, one on a line."""
    first = json.dumps({**head, name: None}).removesuffix("null}")
    rows = ",\n".join(json.dumps(case) for case in cases)
    return f"{first}[\n{rows}\n]}}\n"


def known(name: str) -> dict[str, Any]:
    """Return what a file holds; one that is missing is a failure."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def cases(name: str) -> list[Any]:
    """Return the cases of a file."""
    return list(known(name)["cases"])


def crc32(numbers: Any) -> int:
    """Return the crc32 of integers, as little-endian int64."""
    return zlib.crc32(np.array(numbers, "<i8").tobytes())


def answered(name: str, answer: Callable[[Any], dict[str, Any]]) -> str:
    """Return the text of a file with the answers to its cases."""
    head = known(name)
    return lines(head, "cases", [{**case, **answer(case)} for case in head.pop("cases")])


def numbers(form: dict[str, int]) -> list[int]:
    """Return the numbers that a case describes: i * factor % modulus + plus, to a power."""
    form = {"factor": 1, "modulus": 10, "plus": 1, "power": 1, **form}
    row = [i * form["factor"] % form["modulus"] + form["plus"] for i in range(form["n"])]
    return [number ** form["power"] for number in row]
