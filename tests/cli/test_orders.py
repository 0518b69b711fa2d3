"""`--order` against the registry, and `indexplan orders`: kinds, fields, one's own orders."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from inspect import cleandoc
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli.written import order_as_written
from indexplan.orders import registry as known
from tests.cli.test_cli import fails, run

OURS = {order.algorithm: order for order in (ip.BlockShuffle, ip.Sequential, ip.Shuffle)}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The orders of this library alone are registered, whatever other tests have added."""
    known.registered()  # imports what is not imported yet, here and not into what replaces it
    monkeypatch.setattr(known, "_REGISTRY", dict(OURS))


class Own(ip.Order):
    """What the tests' own orders need; none is ever drawn from."""

    num_samples = 10
    to_dict = fill = find = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Many(Own):
    """Many fields.

    Of several types.
    """

    a: float
    name: str = "x y"
    b: "float" = 0.5
    rows: list[int] = field(default_factory=list)
    seen: int = field(default=0, init=False)

    algorithm = "test-many-v12"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Shuffle()", ip.Shuffle(10)),
        ("ip.Shuffle(seed=10**3)", ip.Shuffle(10, seed=1000)),
        ("  Sequential(\n) ", ip.Sequential(10)),
        ("indexplan.BlockShuffle(10, 4)", ip.BlockShuffle(10, 4)),
        ("BlockShuffle(seed=7, window=3, block_size=1_0)", ip.BlockShuffle(10, 10, 3, 7)),
    ],
)
def test_text(text: str, expected: ip.Order) -> None:
    """A call as in Python, with or without the number of samples and the library's name."""
    assert expected == order_as_written(text, {"num_samples": 10})


def test_classes_of_one_name() -> None:
    """Of two classes with one name none is guessed."""

    class Shuffle(ip.Shuffle):
        algorithm = "shuffle-v2"

    ip.register(Shuffle)
    shared = "tests.cli.test_orders.test_classes_of_one_name.<locals>.Shuffle"
    said = f"must be that of one class; got indexplan.orders.shuffle.Shuffle and {shared}; "
    with pytest.raises(ip.IndexPlanError, match=re.escape(f"{said}rename one of them")):
        order_as_written("Shuffle(3)")
    assert ip.Sequential(10) == order_as_written("Sequential(10)")


def test_a_class_that_is_no_dataclass(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is registered can be called."""

    class Bare(ip.Order):
        algorithm = "bare-v1"

        def __init__(self, num_samples: int) -> None:
            self.num_samples = num_samples

    ip.register(Bare)
    assert run(capsys, "orders").startswith("Bare\nBlockShuffle  Every")
    assert "Bare(num_samples)\n" == run(capsys, "orders", "Bare")
    assert isinstance(order_as_written("Bare()", {"num_samples": 3}), Bare)


def test_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """`indexplan orders` lists what `--order` takes, and describes one as its docstring does."""
    assert (
        "Sequential    Every epoch reads samples 0, 1, 2, ... in turn.\n"
        "Shuffle       Every epoch reads all samples once, in a new random order that the seed "
        "determines.\n\n"
        "`indexplan orders KIND` describes one of them.\n"
    ) in run(capsys, "orders")
    data = json.loads(run(capsys, "orders", "--json"))
    assert sorted(OURS) == [each["algorithm"] for each in data["orders"]]
    words = cleandoc(ip.BlockShuffle.__doc__ or "")
    call = "BlockShuffle(num_samples, block_size, window=1, seed=0)"
    assert f"{call}\n\n{words}\n" == run(capsys, "orders", "BlockShuffle")
    known = {"name": "BlockShuffle", "algorithm": ip.BlockShuffle.algorithm}
    expected = {**known, "call": call, "words": words}
    assert expected == json.loads(run(capsys, "orders", "BlockShuffle", "--json"))
    ip.register(Many)
    call = "Many(a, name='x y', b=0.5, rows=<factory>)"
    assert f"{call}\n\nMany fields.\n\nOf several types.\n" == run(capsys, "orders", "Many")


OWN = '''
from dataclasses import dataclass
import numpy as np
import indexplan as ip


@ip.register
@dataclass(frozen=True, eq=False)
class Backwards(ip.Order):
    """The last sample comes first.

    Parameters
    ----------
    num_samples : int
    shift : int
        Samples that come last instead.
    """

    num_samples: int
    shift: int = 0
    algorithm = "backwards-v1"

    def to_dict(self):
        return {"algorithm": self.algorithm, "num_samples": self.num_samples, "shift": self.shift}

    def fill(self, epoch, starts, stops, out):
        positions = np.concatenate([np.arange(*run) for run in zip(starts, stops)])
        out[:] = (self.num_samples - 1 - self.shift - positions) % self.num_samples

    def find(self, epoch, indices, most=None):
        positions = (self.num_samples - 1 - self.shift - indices) % self.num_samples
        return np.arange(len(indices)), positions
'''


def test_an_order_of_ones_own(tmp_path: Path) -> None:
    """`--import` makes an order of somebody's own known to every verb."""
    (tmp_path / "mine.py").write_text(OWN)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def told(*words: str) -> str:
        command = [sys.executable, "-m", "indexplan", *words, "--import", "mine"]
        environment = {**os.environ, "PYTHONPATH": paths}
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout

    line = "Backwards(num_samples, shift=0)\n\nThe last sample comes first.\n"
    assert "Backwards        The last sample comes first.\n" in told("orders")
    assert told("orders", "Backwards").startswith(line)
    plan = str(tmp_path / "a.plan")
    spec = ["--num-samples=9", "--batch-size=3", "--world-size=1", "--order=Backwards(shift=2)"]
    told("build", plan, *spec)
    assert "6 5 4\n" == told("show", plan, "--epoch=0", "--step=0", "--rank=0")
    assert "ok  every byte of every chunk is what the order generates" in told("verify", plan)


def test_what_cannot_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A module that is not there, or fails, is one line."""
    said = fails(capsys, 2, "orders", "--import", "not_there")
    assert (
        "--import must name a module that Python can import; got 'not_there' "
        "(ModuleNotFoundError: No module named 'not_there'); set PYTHONPATH to the folder that "
        "it is in"
    ) == said
    (tmp_path / "leaving_orders.py").write_text("raise SystemExit(0)")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        said = fails(capsys, 2, "orders", "--import", "leaving_orders")
    assert "got 'leaving_orders' (SystemExit: 0); " in said
    (tmp_path / "broken_orders.py").write_text("1 / 0")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        said = fails(capsys, 2, "orders", "--import", "broken_orders")
    assert "got 'broken_orders' (ZeroDivisionError: division by zero); set " in said
