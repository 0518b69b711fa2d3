"""What the tests of plan directories share: a plan, and the files below a folder."""

from pathlib import Path

import indexplan as ip

PLAN = ip.Plan(ip.Shuffle(1000, seed=5), world_size=3, batch_size=16, sub_epochs=2)


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by name."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
