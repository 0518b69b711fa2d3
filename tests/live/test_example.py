"""torchft's train_ddp with two changed lines, in two groups under torchrun."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from torchft.coordination import LighthouseServer

from benchmarks.measure.fresh import ROOT

pytestmark = pytest.mark.live

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]


def test_the_example_trains_in_two_groups(tmp_path: Path) -> None:
    """Both read three epochs in as many steps as the plan has, and end by themselves."""
    server = LighthouseServer(bind="127.0.0.1:0", min_replicas=2, join_timeout_ms=60_000)
    port = server.address().rsplit(":", 1)[1]
    path = [str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "OTEL_SDK_DISABLED": "true",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path),
        "TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{port}",
    }
    logs = [tmp_path / f"group-{group}" for group in range(2)]
    groups = []
    for group, log in enumerate(logs):
        with log.open("w") as out:  # a pipe that nobody empties would stop a group
            command = [*TORCHRUN, str(ROOT / "docs/examples/torchft_ddp.py")]
            which = {"REPLICA_GROUP_ID": str(group)}
            groups.append(
                subprocess.Popen(command, env={**environment, **which}, stdout=out, stderr=out)
            )
    try:
        codes = [group.wait(timeout=200) for group in groups]
    finally:
        for each in groups:
            each.kill()
            each.wait()
        server.shutdown()
    for code, log in zip(codes, logs, strict=True):
        text = log.read_text()
        assert 0 == code, text[-5000:]
        assert "read 3 epochs in 48 steps" in text
        first, *_, last = map(float, re.findall(r"loss (\S+)", text))
        assert last < first
