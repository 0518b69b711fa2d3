"""Plan directories as format version 1 wrote them: tests/golden/format_1.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/format_1.json").read_text())["directories"]


def old(name: str, root: Path) -> Path:
    """Write a plan directory as it was written when format version 1 was all there was."""
    for path, data in GOLDEN[name].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(base64.b64decode(data))
    return root
