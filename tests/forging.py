"""Forging a plan directory with care: the manifest is changed, and its digests made right again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from indexplan.canonical import canonical_json


def digest(data: Any) -> str:
    """The sha256 of canonical JSON, which fingerprints are."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def rewritten(root: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change a manifest; the plan's order follows, and all digests are made right again."""
    manifest = change(json.loads((root / "manifest.json").read_text()))
    manifest.pop("manifest_sha256", None)
    if isinstance(manifest.get("plan"), dict):
        manifest["plan"]["order"] = manifest.get("order")
    for field in ("order", "plan"):
        if f"{field}_fingerprint" in manifest:
            manifest[f"{field}_fingerprint"] = digest(manifest.get(field))
    text = canonical_json({**manifest, "manifest_sha256": digest(manifest)})
    (root / "manifest.json").write_text(text)
