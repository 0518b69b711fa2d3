"""Running ranks: processes that find each other over gloo on loopback, and report what they saw."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.support.forked import Forks, fork_workers, wait_for

ROOT = Path(__file__).parents[2]
ON_CPU = {"ACCELERATE_USE_CPU": "true"}  # as `accelerate launch --cpu` sets it
_forks: list[Forks] = []


def run_ranks(
    function: str, world_size: int, *arguments: Any, timeout: int = 600, **environment: str
) -> list[Any]:
    """Call `package.module:name` in every rank's own process; return what each returned.

    The function is called as name(*arguments); arguments and results travel as JSON. Variables are
    set as torchrun sets them, and others as given. A rank that fails ends the others, which would
    wait for it, and fails the test with what it printed; one not done after `timeout` seconds
    ends itself, and prints where all its threads were.
    """
    module = function.partition(":")[0]
    with tempfile.TemporaryDirectory() as folder:
        known = {"NODE_RANK": "0", "RANKS": str(world_size), "TIMEOUT": str(timeout)}
        ranks = forks_of(module).ranks(
            f"{__name__}:call",
            Path(folder),
            world_size,
            function,
            arguments,
            **{**known, **environment},
        )
        wait_for(ranks)
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(world_size)]


def in_forks(
    function: str, folder: Path, *each: tuple[Any, ...], timeout: int = 900, **environment: str
) -> list[Any]:
    """Call `package.module:name` in a folder, in a process for each tuple of arguments.

    They are no ranks, so variables of torchrun are not set. Return what each call returned. The
    function's module is imported, with what it says that ranks import, before they are forked.
    """
    forks, told = forks_of(function.partition(":")[0]), {"TIMEOUT": str(timeout), **environment}
    names = [str(number) for number in range(len(each))]
    wait_for(
        [
            forks.start(f"{__name__}:answer", folder / f"{name}.log", function, given, name, **told)
            for name, given in zip(names, each, strict=True)
        ]
    )
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


def forks_of(module: str) -> Forks:
    """Return what forks ranks, once it has imported what those of a module need.

    It is one for all modules: a framework takes up to 10 s of a core to import. So a rank has
    whatever the modules before it imported.
    """
    if not _forks:
        _forks.append(Forks("tests.trainers.warmed"))
    try:
        _forks[0].load(module)
    except BaseException:  # it has ended: the next module starts another
        _end()
        raise
    return _forks[0]


@atexit.register
def _end() -> None:
    while _forks:
        _forks.pop().end()


def call(function: str, arguments: list[Any]) -> None:
    """Call a function in a rank."""
    # Workers forked from a process with threads can hang (CPython issue 112275).
    fork_workers()
    answer(function, arguments, os.environ["RANK"])


def answer(function: str, arguments: list[Any], name: str) -> None:
    """Call a function, and write what it returns where the process was started.

    Workers and others that end may print to its log meanwhile.
    """
    file = Path.cwd() / f"{name}.json"
    module, name = function.split(":")
    value = getattr(importlib.import_module(module), name)(*arguments)
    file.write_text(json.dumps(value))
