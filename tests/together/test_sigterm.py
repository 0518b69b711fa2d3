"""SIGTERM to a whole process group: workers die, and what `finally` saves is what was read."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, os, signal, sys
import indexplan as ip
from indexplan_torch import PlanLoader

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: None)  # workers have their own, and die
    plan, received = ip.Plan(ip.Shuffle(400, seed=1), batch_size=4), []
    loader = PlanLoader(range(400), plan, num_workers=2, multiprocessing_context=sys.argv[1])
    try:
        for batch in loader:
            received += batch.tolist()
            if len(received) == 80:
                os.killpg(0, signal.SIGTERM)
    except (RuntimeError, EOFError, OSError):  # torch's, by which of its pipes it looks at
        pass
    else:
        sys.exit("no worker died")
    finally:
        again = PlanLoader(range(400), plan)
        again.load_state_dict(loader.state_dict())
        for batch in again:
            received += batch.tolist()
        print(json.dumps([received, plan.replace(world_size=1).indices(0, rank=0).tolist()]))
"""


def test_workers_die_with_the_group() -> None:
    """After a resume each sample was read once, in the plan's sequence, forked and spawned."""
    for context in ("fork", "spawn"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, context],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,  # a group of its own
            timeout=300,
        )
        assert 0 == done.returncode, done.stderr
        received, expected = json.loads(done.stdout)
        assert expected == received
