"""Errors of finishing a build that was made in parts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
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


def again(change: Callable[[Path], Any], **options: Any) -> None:
    """Build a plan, change something, and build it again."""
    change(saved())
    saved(**options)


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
    (
        "a record of no plan",
        lambda: finish_of_forged_part(plan=5),
        "a.plan/part-00001-of-00002.json: the plan of a record must be an object; got 5; delete "
        "it, and run part 1/2 again",
    ),
    (
        "a record of a chunk's size that is none",
        lambda: finish_of_forged_part(chunk_bytes=[1, 1]),
        "a.plan/part-00001-of-00002.json: a size must be an integer from 128 to 2**63 - 1; got "
        "1; delete it, and run part 1/2 again",
    ),
    # finishing
    (
        "a finish of nothing",
        lambda: ip.finish("a.plan"),
        "a.plan must be a plan directory; got nothing there; check the path, or build it with "
        "`indexplan build`",
    ),
    (
        "a finish without a chunk",
        lambda: ip.finish(parts(1, 3)),
        "a.plan must have all of its chunks; got no record of chunks 1 and 3 of epoch 0; run "
        "parts 2/4 and 4/4 again",
    ),
    (
        "a finish with a part's chunk removed",
        lambda: (
            parts(1, of=2),
            (HERE / "a.plan/epoch-00000/chunk-00000.npy").unlink(),
            parts(2, of=2),
            ip.finish("a.plan"),
        ),
        "a.plan must have all of its chunks; got none of chunk 0 of epoch 0; run part 1/2 again",
    ),
    (
        "a finish of a build without parts",
        lambda: ip.finish(((r := saved()) / "manifest.json").unlink() or r),
        "a.plan must have all of its chunks; got no record of chunks 0, 1, 2 and 3 of epoch 0; "
        "run the same build again",
    ),
    (
        "a finish of a chunk that was cut",
        lambda: (parts(1, of=2), written(f"a.plan/{CHUNK}", b"x"), parts(2, of=2)),
        "a.plan/epoch-00000/chunk-00001.npy must hold 1152 bytes; got 1; delete it, and run its "
        "part again",
    ),
    (
        "a finish of an edited build.json",
        lambda: ip.finish(edited("build.json", epochs=5)),
        "a.plan: epochs must be a list of integers; got 5; restore the file, or build the plan "
        "again at another path",
    ),
    (
        "a finish of a build.json that is no JSON",
        lambda: (parts(1), written("a.plan/build.json"), ip.finish("a.plan")),
        "a.plan: build.json must be JSON; got b'' (Expecting value: line 1 column 1 (char 0)); "
        "restore the file, or build the plan again at another path",
    ),
    (
        "a record that is no JSON",
        lambda: finish_of_edited_parts(("{", "")),
        "a.plan/part-00001-of-00002.json: a record must be JSON; got "
        'b\'"blocks":"e1a1d87358d66acae5f2989648361ae3","build_sha256":"\' (Extra data: line 1 '
        "column 9 (char 8)); delete it, and run part 1/2 again",
    ),
    (
        "a record without fields",
        lambda: finish_of_edited_parts(('"plan"', '"plane"')),
        "a.plan/part-00001-of-00002.json: the record of a part must have the fields ['plan']; "
        "got only ['blocks', 'build_sha256', 'chunk_bytes', 'format', 'format_version', 'part', "
        "'part_sha256', 'plane']; delete it, and run part 1/2 again",
    ),
    (
        "a record that was edited",
        lambda: finish_of_edited_parts(("1152", "1153")),
        "a.plan/part-00001-of-00002.json: a record must be as it was written; it was edited; "
        "delete it, and run part 1/2 again",
    ),
    (
        "a record of another part",
        lambda: (
            parts(2, of=2),
            shutil.copy("a.plan/part-00002-of-00002.json", "a.plan/part-00001-of-00002.json"),
            ip.finish("a.plan"),
        ),
        "a.plan/part-00001-of-00002.json: a record must belong to the part in its name, and to "
        "this build; delete it, and run part 1/2 again",
    ),
    (
        "a record of other chunks",
        lambda: finish_of_forged_part(chunk_bytes=[1152]),
        "a.plan/part-00001-of-00002.json: a record must hold its part's chunks and blocks; it "
        "does not; delete it, and run part 1/2 again",
    ),
    (
        "parts of other partitions",
        lambda: (parts(1), saved(plan=STORED.replace(world_size=7), part=(2, 4))),
        "a.plan must be a build of the same partition; got one with world_size 3, not 7; give all "
        "parts the same partition, or delete part-*.json and run every part again",
    ),
    (
        "a record of other hashes",
        lambda: (forged_part(blocks="00" * 16), parts(1, of=2)),
        "a.plan/part-00001-of-00002.json must hold what its part generates; got other hashes; "
        "delete it and run the same part again",
    ),
    (
        "a block table of other hashes under a right digest",
        table_of_zeros,
        "a.plan/manifest.json must hold what its build writes; got other bytes; delete the file "
        "and run the same build again",
    ),
    (
        "a finish of another build.json",
        lambda: ip.finish(edited("build.json", units_per_chunk=250)),
        "a.plan: build.json must hold the build that manifest.json holds; got another; restore "
        "the file, or build the plan again at another path",
    ),
    (
        "a finish in a locked folder",
        lambda: late("a.plan"),
        "a.plan/part-00001-of-00004.json must be removed; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
]
