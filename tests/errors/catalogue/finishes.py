"""Errors of finishing a build that was made in parts."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    Case,
    edited,
    locked,
    parts,
    saved,
    written,
)
from tests.support.forging import digest, rewritten

HERE = Path()


def finish_of_edited_parts(*changes: tuple[str, str]) -> None:
    """Edit the record of part 1 of 2, and finish."""
    root = parts(1, of=2)
    record = root / "part-00001-of-00002.json"
    for old, new in changes:
        record.write_text(record.read_text().replace(old, new, 1))
    parts(2, of=2)


def finish_of_forged_part(**changes: Any) -> None:
    """Change the record of part 1 of 2, make its digest right, and finish."""
    forged_part(**changes)
    parts(2, of=2)


def forged_part(**changes: Any) -> None:
    """Change the record of part 1 of 2, and make its digest right."""
    record = parts(1, of=2) / "part-00001-of-00002.json"
    content = json.loads(record.read_text())
    content.update(changes)
    del content["part_sha256"]
    record.write_text(json.dumps({**content, "part_sha256": digest(content)}))


def table_of_zeros() -> None:
    """Forge a block table and its manifest, and build a part again."""
    saved()
    table = written("a.plan/blocks.npy", Path("a.plan/blocks.npy").read_bytes()[:128] + bytes(32))
    sha256 = hashlib.sha256(table.read_bytes()).hexdigest()
    rewritten(Path("a.plan"), lambda manifest: {**manifest, "blocks_sha256": sha256})
    parts(1)


def late(path: str) -> None:
    """Finish a plan in whose locked folder lies a part's record."""
    text = (parts(1) / "part-00001-of-00004.json").read_bytes()
    written(f"{saved()}/part-00001-of-00004.json", text)
    locked({path: 0o555}, lambda: ip.finish(path))


CASES: list[Case] = [
    ("a record of no plan", lambda: finish_of_forged_part(plan=5)),
    ("a record of a chunk's size that is none", lambda: finish_of_forged_part(chunk_bytes=[1, 1])),
    # finishing
    ("a finish of nothing", lambda: ip.finish("a.plan")),
    ("a finish without a chunk", lambda: ip.finish(parts(1, 3))),
    (
        "a finish with a part's chunk removed",
        lambda: (
            parts(1, of=2),
            (HERE / "a.plan/epoch-00000/chunk-00000.npy").unlink(),
            parts(2, of=2),
            ip.finish("a.plan"),
        ),
    ),
    (
        "a finish of a build without parts",
        lambda: ip.finish(((r := saved()) / "manifest.json").unlink() or r),
    ),
    (
        "a finish of a chunk that was cut",
        lambda: (parts(1, of=2), written(f"a.plan/{CHUNK}", b"x"), parts(2, of=2)),
    ),
    ("a finish of an edited build.json", lambda: ip.finish(edited("build.json", epochs=5))),
    (
        "a finish of a build.json that is no JSON",
        lambda: (parts(1), written("a.plan/build.json"), ip.finish("a.plan")),
    ),
    ("a record that is no JSON", lambda: finish_of_edited_parts(("{", ""))),
    ("a record without fields", lambda: finish_of_edited_parts(('"plan"', '"plane"'))),
    ("a record that was edited", lambda: finish_of_edited_parts(("1152", "1153"))),
    (
        "a record of another part",
        lambda: (
            parts(2, of=2),
            shutil.copy("a.plan/part-00002-of-00002.json", "a.plan/part-00001-of-00002.json"),
            ip.finish("a.plan"),
        ),
    ),
    ("a record of other chunks", lambda: finish_of_forged_part(chunk_bytes=[1152])),
    ("a record of another version", lambda: finish_of_forged_part(format_version=2)),
    ("a record whose sizes are no list", lambda: finish_of_forged_part(chunk_bytes=1152)),
    ("a record whose hashes are no numbers", lambda: finish_of_forged_part(blocks="xy")),
    (
        "parts of other partitions",
        lambda: (parts(1), saved(plan=STORED.replace(world_size=7), part=(2, 4))),
    ),
    ("a record of other hashes", lambda: (forged_part(blocks="00" * 16), parts(1, of=2))),
    ("a block table of other hashes under a right digest", table_of_zeros),
    (
        "a finish of another build.json",
        lambda: ip.finish(edited("build.json", units_per_chunk=250)),
    ),
    ("a finish in a locked folder", lambda: late("a.plan")),
]
