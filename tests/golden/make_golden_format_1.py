"""Write format_1.json: plan directories of orders from elsewhere, in format version 1.

`python -m tests.golden.make_golden_format_1`, with the indexplan of commit 16c52b3, whose version 1
did not say what such an order promises. Kept, as such directories lie about; never to be made anew.
"""

import base64
import json
import tempfile
from pathlib import Path

import indexplan as ip
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.trees import tree

PLANS = {
    "bins": ip.Plan(Bins(20), world_size=2, batch_size=2, remainder="carry"),
    "changing bins": ip.Plan(ChangingBins(20), world_size=2, batch_size=2),
    "drawn": ip.Plan(Drawn(20, seed=7), world_size=2, batch_size=3),
}


def main() -> None:
    """Write the file."""
    golden = {}
    for name, plan in PLANS.items():
        with tempfile.TemporaryDirectory() as folder:
            # of changing bins an even number of epochs: as many units in each that is stored
            ip.save(plan, Path(folder) / "a.plan", epochs=[0, 2], units_per_chunk=8)
            files = tree(Path(folder) / "a.plan")
        assert json.loads(files["build.json"])["format_version"] == 1
        golden[name] = {path: base64.b64encode(data).decode() for path, data in files.items()}
    origin = "written by tests/golden/make_golden_format_1.py with commit 16c52b3"
    text = json.dumps({"origin": origin, "directories": golden}, indent=1) + "\n"
    Path(__file__).with_name("format_1.json").write_text(text)


if __name__ == "__main__":
    main()
