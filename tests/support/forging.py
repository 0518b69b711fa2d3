"""Forging with care: plan directories and ledgers are changed, and digests made right again."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from indexplan.canonical import canonical_json
from indexplan.ledger.lines import FIRST, sha256_of


def digest(data: Any) -> str:
    """The sha256 of canonical JSON, which fingerprints are."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def rewritten(root: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change a manifest; the plan's order and build.json follow, and all digests are right."""
    manifest = change(json.loads((root / "manifest.json").read_text()))
    manifest.pop("manifest_sha256", None)
    if isinstance(manifest.get("plan"), dict):
        manifest["plan"]["order"] = manifest.get("order")
    for field in ("order", "plan"):
        if f"{field}_fingerprint" in manifest:
            manifest[f"{field}_fingerprint"] = digest(manifest.get(field))
    build = json.loads((root / "build.json").read_text())
    text = canonical_json({name: manifest[name] for name in build if name in manifest})
    (root / "build.json").write_text(text)
    text = canonical_json({**manifest, "manifest_sha256": digest(manifest)})
    (root / "manifest.json").write_text(text)


def ledger_of(lines: Iterable[dict[str, Any]]) -> bytes:
    """The bytes of a ledger of any lines, each with the checksum and hash that it needs."""
    previous, texts = FIRST, []
    for line in lines:
        rest = json.dumps({"previous": previous, **line}, sort_keys=True, separators=(",", ":"))[1:]
        texts.append(f'{{"check":"{zlib.crc32(rest.encode()):08x}",{rest}'.encode())
        previous = sha256_of(texts[-1])
    return b"".join(text + b"\n" for text in texts)
