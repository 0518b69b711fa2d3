"""What every section of errors.txt has names for: plans, files, and who may not touch them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import indexplan as ip
from tests.support.children import nobody
from tests.support.forging import rewritten
from tests.support.refusals import CURSOR, EMPTY, PLAN, RESUMED, WHOLE

OPEN = ip.Plan(ip.Sequential(10), batch_size=2)
STORED = ip.Plan(ip.Sequential(1000), world_size=3, batch_size=16)
CHUNK = "epoch-00000/chunk-00001.npy"


@ip.register
@dataclass(frozen=True, eq=False)
class Odd(ip.Order):
    """An order of 10 samples, whatever is asked; none is ever drawn from."""

    rows: list[int] | None = None

    algorithm = "test-odd-v1"
    num_samples = 10
    to_dict = fill = find = None  # type: ignore[assignment]


def spec(**changes: Any) -> Any:
    """Read a plan whose saved form was edited."""
    return ip.Plan.from_json(json.dumps({**json.loads(PLAN.to_json()), **changes}))


def cursor(**changes: Any) -> Any:
    """Read a cursor whose saved form was edited."""
    return ip.Cursor.from_dict({**CURSOR.to_dict(), **changes})


def saved(path: str = "a.plan", plan: ip.Plan = STORED, **options: Any) -> Path:
    """Build a plan directory of one epoch in 4 chunks."""
    ip.save(plan, path, **{"units_per_chunk": 256, **options})
    return Path(path)


def parts(*numbers: int, of: int = 4) -> Path:
    """Build some parts of that plan."""
    for number in numbers:
        saved(part=(number, of))
    return Path("a.plan")


def written(name: str, content: bytes | str = b"") -> Path:
    """Write a file, and the folder that it lies in."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def damaged(path: Path, at: int = 200) -> None:
    """Change a byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def edited(name: str = "plan.json", **changes: Any) -> Path:
    """Edit a JSON file of a plan directory, and nothing else."""
    path = saved() / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path.parent


def forged(**changes: Any) -> Path:
    """Edit a plan.json and make its digest right again."""
    root = saved()
    rewritten(root, lambda content: {**content, **changes})
    return root


def load_edited(**changes: Any) -> None:
    """Open a plan whose plan.json was edited."""
    ip.load(edited(**changes))


def load_forged(**changes: Any) -> None:
    """Open a plan whose plan.json was edited with care."""
    ip.load(forged(**changes))


def locked(modes: dict[str, int], do: Callable[[], Any]) -> None:
    """Do something as somebody whom the modes of some paths keep from it."""
    with nobody(modes):
        do()


def without(package: str, do: Callable[[], Any]) -> None:
    """Do something where a package is not installed."""
    names = [name for name in sys.modules if name.split(".")[0] == package]
    with patch.dict(sys.modules), patch.object(sys, "meta_path", [Lost(package), *sys.meta_path]):
        for name in names:
            del sys.modules[name]
        do()


class Lost(MetaPathFinder):
    """Finds that a package is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise what an import of the package raises."""
        if name == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Elsewhere(Executor):
    """An executor that is no pool of threads: whatever it runs has travelled."""

    def __init__(self, lost: str = "") -> None:
        self.lost = lost

    def submit(self, task: Any, *arguments: Any, **options: Any) -> Future[Any]:
        """Run a task at once, where a module is not there."""
        here = sys.modules.pop(self.lost, None)
        future: Future[Any] = Future()
        try:
            future.set_result(task(*arguments, **options))
        except Exception as error:
            future.set_exception(error)
        if here is not None:
            sys.modules[self.lost] = here
        return future


def array(name: str, values: Any) -> str:
    """Write a .npy file."""
    np.save(name, values)
    return name


def spec_file(plan: ip.Plan = WHOLE) -> None:
    """Write a plan's JSON."""
    written("plan.json", plan.to_json())


def stores() -> Any:
    """The memory of fsspec, empty."""
    import fsspec

    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    return store
