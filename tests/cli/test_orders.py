"""`--order` against the registry, and `indexplan orders`: kinds, fields, one's own orders."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.cli.kinds import Kind
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

    Parameters
    ----------
    a, b : float
        Two numbers,
        in one line.
    name : str, default "x y"
        A text.

    Attributes
    ----------
    rows : list of int
        Of another section.
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "BlokShuffle(4)",
            "--order, character 1: the name must be one of BlockShuffle, Many, Sequential, Shuffle"
            ", Split, curriculum, folds, pieces, range, repeat_factors; got 'BlokShuffle'; did you "
            "mean BlockShuffle? give --import for orders of your own",
        ),
        (
            "BlockShuffle(10, blocksize=4)",
            "--order, character 18: an argument of BlockShuffle must be one of num_samples, "
            "block_size, window, seed; got 'blocksize'; did you mean block_size? give one of "
            "these",
        ),
        (
            "Many(1, b='é', c=2)",
            "--order, character 16: an argument of Many must be one of a, name, b, rows; got 'c'; "
            "give one of these",
        ),
        (
            "  Many(\n  name=Shuffle(9,\n  sed=2))",
            "--order, character 29: an argument of Shuffle must be one of num_samples, seed; got "
            "'sed'; did you mean seed? give one of these",
        ),
        (
            "Many(name='a')",
            "--order, character 1: a of Many must be given; got none; add a=..., as `indexplan "
            "orders Many` describes it",
        ),
        (
            "Many(1, name=Shuffle(3, seed=1.5))",
            "--order, character 14: seed must be an integer from 0 to 2**128 - 1; got 1.5; hash "
            "other seeds to such an integer first",
        ),
        (
            "Shuffle(3, seed=1, seed=2)",
            "--order, character 20: seed must be given once; got seed=2; leave one out",
        ),
    ],
)  # fmt: skip
def test_wrong_text(text: str, said: str) -> None:
    """What cannot be made names its place, what can, and what was probably meant."""
    ip.register(Many)
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(said)}$"):
        order_as_written(text, where="--order")


def test_classes_of_one_name() -> None:
    """Of two classes with one name none is guessed."""

    class Shuffle(ip.Shuffle):
        algorithm = "shuffle-v2"

    ip.register(Shuffle)
    shared = "tests.cli.test_orders.test_classes_of_one_name.<locals>.Shuffle"
    said = f"must be the name of one class; got indexplan.orders.shuffle.Shuffle and {shared}; "
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
    assert "write it as:\n  Bare(num_samples)\n" in run(capsys, "orders", "Bare")
    assert isinstance(order_as_written("Bare()", {"num_samples": 3}), Bare)


@pytest.mark.parametrize("order", OURS.values())
def test_every_argument_is_described(order: type[ip.Order]) -> None:
    """Each argument of an order of ours has its type, its default and a line."""
    kind = Kind.of(order)
    assert (order.__name__, order.algorithm) == (kind.name, kind.algorithm)
    assert kind.words in (order.__doc__ or "")
    assert [each.name for each in fields(order)] == [each.name for each in kind.arguments]  # type: ignore[arg-type]
    for each in kind.arguments:
        assert "int" == each.type
        assert each.words
    text = ", ".join(f"{each.name}=3" for each in kind.arguments if each.required)
    made = order_as_written(f"{kind.name}({text})").to_dict()
    assert [each.default for each in kind.arguments if not each.required] == [
        made[each.name] for each in kind.arguments if not each.required
    ]


def test_descriptions() -> None:
    """Names may share a description, which is put in one line; other sections are none of it."""
    kind = Kind.of(Many)
    assert ("Many", "Many fields.") == (kind.name, kind.words)
    words = {each.name: each.words for each in kind.arguments}
    both = "Two numbers, in one line."
    assert {"a": both, "b": both, "name": "A text.", "rows": ""} == words
    assert ["float", "str", "float", "list[int]"] == [each.type for each in kind.arguments]
    assert [True, False, False, False] == [each.required for each in kind.arguments]

    @dataclass(frozen=True, eq=False)
    class Bare(Own):
        size: int
        algorithm = "test-bare-v1"

    assert "Bare\n\nwrite it as:\n  Bare(size)\n\narguments:\n  size  integer" == str(Kind.of(Bare))


def test_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """`indexplan orders` lists what `--order` takes, in words and as JSON."""
    said = run(capsys, "orders")
    assert (
        "Sequential    Every epoch reads samples 0, 1, 2, ... in turn.\n"
        "Shuffle       Every epoch reads all samples once, in a new random order that the seed "
        "determines.\n\n"
        "To make orders, or parts of them:\n\n"
        "Split           Splits a dataset at random into disjoint parts, such as train and val, "
    ) in said
    assert said.endswith("\n\n`indexplan orders KIND` describes one of them, with an example.\n")
    data = json.loads(run(capsys, "orders", "--json"))
    helpers = ["Split", "curriculum", "folds", "pieces", "repeat_factors"]
    assert helpers == [each["name"] for each in data["helpers"]]
    assert sorted(OURS) == [each["algorithm"] for each in data["orders"]]
    assert {
        "name": "window",
        "type": "int",
        "required": False,
        "default": 1,
        "words": "Number of blocks whose samples are shuffled together, 1 <= window < 2**63. A "
        "larger window mixes better, but keeps more blocks in use at a time.",
    } == data["orders"][0]["arguments"][2]


def test_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--order` takes a text, and --num-samples what it leaves out."""
    words = ["build", "--num-samples", "1e2", "--batch-size", "4", str(tmp_path / "a")]
    run(capsys, *words, "--order", "BlockShuffle(block_size=10, window=3)")
    assert ip.Plan(ip.BlockShuffle(100, 10, 3), batch_size=4) == ip.load(tmp_path / "a")


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

    line = "  shift        integer (0): Samples that come last instead.\n"
    assert "Backwards        The last sample comes first.\n" in told("orders")
    assert line in told("orders", "Backwards")
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


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    """`bench` reads the same text."""
    assert 2 == main(["bench", "--num-samples", "1e6", "--order", "Shufle()"])
    assert "did you mean Shuffle?" in capsys.readouterr().err
