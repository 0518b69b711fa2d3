"""Write the answers of mixture_v1.json again: `python -m tests.golden.make_golden_mixture`.

The specs are those in the file. The answers come from the oracle in tests/support, the design's
words in plain Python, and not from the library; all 120 whole blocks take some minutes. Other
answers are another algorithm, with another name.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from struct import pack
from typing import Any

from tests.support import mixing

FILE = Path(__file__).with_name("mixture_v1.json")


def one_phase(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case of one phase of weights, with its answers."""
    shares, each = tuple(case["shares"]), mixing.of_a_block(case["shares"])
    key, phase = tuple(case["key"]), case["phase"]
    if "seed" in case:
        key = mixing.key_of(int(case["seed"]))
    answers: dict[str, Any] = {"block": sum(each)}
    answers["within_2_32"] = max(mixing.reaches(mixing.tree_of(each)))
    rows = {n: mixing.whole_block(each, (key, phase, int(n))) for n in case["block_sha256_u2"]}
    answers["block_sha256_u2"] = {
        n: hashlib.sha256(pack(f"<{len(row)}H", *row)).hexdigest() for n, row in rows.items()
    }
    if "first" in case:
        answers["first"] = rows["0"][: len(case["first"])]
    if "places" in case:
        answers["answers"] = []
        for place in case["places"]:
            first, then = (mixing.in_phase(shares, key, phase, at) for at in (place, place + 1))
            (source,) = (j for j in range(len(first)) if first[j] != then[j])
            answers["answers"].append([source, first[source]])
        answers["count_before_last_place"] = first
    return {**case, "key": list(key), **answers}


def in_phases(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case of several phases of weights, with its answers."""
    phases, key = case["phases"], tuple(case["key"])
    bases = [mixing.counts(phases, key, place) for place, _ in phases]
    answers = [list(mixing.unit(phases, key, place)) for place in case["places"]]
    return {**case, "bases": bases, "answers": answers}


def main() -> None:
    """Write the file."""
    known = json.loads(FILE.read_text())
    for kind, answered in (("one_phase", one_phase), ("phases", in_phases), ("seeded", one_phase)):
        known[kind] = [answered(case) for case in known[kind]]
    FILE.write_text(json.dumps(known))


if __name__ == "__main__":
    main()
