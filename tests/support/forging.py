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
