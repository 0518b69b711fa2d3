"""Lightning's Trainer finds our callback in an installed package; where it can't, we say so."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHILD = """
import json, sys, warnings
sys.path[:] = json.loads(sys.argv[1])
import lightning.pytorch
import torch
import indexplan as ip
from indexplan_torch import PlanLoader

def warned():
    loader = PlanLoader(torch.arange(8), ip.Plan(ip.Sequential(8), batch_size=4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert len(list(loader)) == 2
    return [str(each.message) for each in caught]

said = [warned()]
sys.path.append(sys.argv[2])
said.append(warned())
sys.path.pop()
import indexplan_torch.lightning
print(json.dumps([*said, warned()]))
"""


def test_a_package_that_is_only_on_the_path(tmp_path: Path) -> None:
    """The first pass warns, once; not with the entry points, nor where the callback is passed."""
    site = tmp_path / "site"  # all that can be imported here, but nothing that is known of ours
    site.mkdir()
    for folder in map(Path, sys.path):
        for each in folder.iterdir() if folder.name == "site-packages" else []:
            ours = each.name.startswith(("indexplan", "_indexplan", "__editable__"))
            if not ours and not (site / each.name).exists():
                (site / each.name).symlink_to(each)
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    known = tmp_path / "known" / "indexplan-1.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: indexplan\nVersion: 1\n")
    lines = [f"[{group}]\n{name} = {at}" for group in points for name, at in points[group].items()]
    (known / "entry_points.txt").write_text("\n".join(lines))
    library = [each for each in sys.path if each and Path(each).name != "site-packages"]
    paths = [str(ROOT), str(ROOT / "adapters"), str(site), *library]
    command = [sys.executable, "-S", "-c", CHILD, json.dumps(paths), str(known.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    only, found, passed = json.loads(done.stdout.splitlines()[-1])
    assert (found, passed) == ([], [])
    (message,) = only
    assert message.startswith("indexplan must be installed where Lightning's Trainer reads a plan")
    assert "Trainer(callbacks=[indexplan_torch.lightning.RefreshStepCounts()])" in message
