"""Run a job in a process of its own: a function, given by name; its result comes as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Nothing is imported before the job's own modules, as some jobs measure just that. The result goes
# into a file, and what is said into another: loaders print, and leave processes behind them that
# would hold on to a pipe.
CHILD = """
from {module} import {function}
result = {function}(*{arguments!r})
import json
with open({result!r}, "w") as file:
    json.dump(result, file)
"""


class JobError(RuntimeError):
    """A job that did not end well; `code` is its process's, None if it took too long."""

    def __init__(self, job: str, code: int | None, said: str) -> None:
        super().__init__(f"{job}, exit code {code}:\n{said}")
        self.code = code


def run_fresh(job: str, *arguments: Any, seconds: float | None = None, **environment: str) -> Any:
    """Return what a function of this checkout, "module.function", returns in a fresh process.

    Arguments are literals, and the result is JSON. `environment` is added to this process's own.
    A job that fails, is ended or takes more than `seconds` raises JobError, with what it said.
    """
    module, _, function = job.rpartition(".")
    paths = [str(ROOT), str(ROOT / "adapters"), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory() as folder:
        result, said = Path(folder) / "result.json", Path(folder) / "said.txt"
        code = CHILD.format(
            module=module, function=function, arguments=arguments, result=str(result)
        )
        with said.open("w") as stream:
            try:
                exit_code = subprocess.run(
                    [sys.executable, "-c", code],
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
                    stdout=stream,
                    stderr=stream,
                    timeout=seconds,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                exit_code = None
        if exit_code != 0:
            raise JobError(f"{job}{arguments}", exit_code, said.read_text()[-5000:])
        return json.loads(result.read_text())
