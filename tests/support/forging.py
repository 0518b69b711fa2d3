"""Forging with care: plan directories and ledgers are changed, and digests made right again."""

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from indexplan.canonical import canonical_json
from indexplan.kernels.xxh64 import xxh64
from indexplan.ledger.lines import FIRST, sha256_of


class Trap:
    """Something that makes a folder in the current one when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)


def digest(data: Any) -> str:
    """The sha256 of canonical JSON, which fingerprints are."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def rewritten(root: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change plan.json, and make its digest right again; then the hashes say so, too."""
    file = root / "plan.json"
    before = json.loads(file.read_text())
    content = change({name: before[name] for name in before if name != "sha256"})
    content.pop("sha256", None)
    file.write_text(canonical_json({**content, "sha256": digest(content)}))
    for hashes in root.glob("epoch-*/*.xxh64"):
        name = f"{hashes.relative_to(root).with_suffix('.npy')}"
        tag = hashlib.sha256(f"{digest(content)} {name}".encode()).digest()
        hashes.write_bytes(tag + hashes.read_bytes()[32:])


def rehashed(path: Path) -> None:
    """Make the hashes of a chunk file that was changed right again."""
    data, hashes = path.read_bytes(), path.with_suffix(".xxh64")
    found = [xxh64(data[start : start + 2**22]) for start in range(0, len(data), 2**22)]
    hashes.write_bytes(hashes.read_bytes()[:32] + np.array(found, "<u8").tobytes())


def ledger_of(lines: Iterable[dict[str, Any]]) -> bytes:
    """The bytes of a ledger of any lines, each with the checksum and hash that it needs."""
    previous, texts = FIRST, []
    for line in lines:
        rest = json.dumps({"previous": previous, **line}, sort_keys=True, separators=(",", ":"))[1:]
        texts.append(f'{{"check":"{zlib.crc32(rest.encode()):08x}",{rest}'.encode())
        previous = sha256_of(texts[-1])
    return b"".join(text + b"\n" for text in texts)
