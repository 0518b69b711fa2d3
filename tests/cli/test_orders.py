"""`--order` against the registry, and `indexplan orders`: kinds, fields, one's own orders."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.orders import registry as known
from indexplan.orders.kinds import READERS, Kind, order_from_text
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
        ("shuffle", ip.Shuffle(10)),
        ("shuffle-v1 seed=1e3", ip.Shuffle(10, seed=1000)),
        ("  sequential ", ip.Sequential(10)),
        ("block-shuffle block_size=4", ip.BlockShuffle(10, 4)),
        ("block-shuffle seed=7 'window=3' block_size=\"1_0\"", ip.BlockShuffle(10, 10, 3, 7)),
    ],
)
def test_text(text: str, expected: ip.Order) -> None:
    """A kind with or without its version, then fields in any order, split as a shell does."""
    assert expected == order_from_text(text, 10)
    first, *rest = shlex.split(text)
    assert expected == order_from_text(first, 10, rest)


def test_types() -> None:
    """A value is read as its field's type, quotes keep spaces, and defaults stay away."""
    ip.register(Many)
    order: Any = order_from_text("test-many a=1e-1 'name=a=b c'", 10)
    assert (0.1, "a=b c", 0.5) == (order.a, order.name, order.b)
    assert "" == order_from_text("test-many a=1 name=", 10).name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "blok-shuffle",
            "the kind of an order must be one of block-shuffle, sequential, shuffle, test-many; "
            "got 'blok-shuffle'; did you mean block-shuffle? `indexplan orders` lists them",
        ),
        (
            "zzz",
            "the kind of an order must be one of block-shuffle, sequential, shuffle, test-many; "
            "got 'zzz'; `indexplan orders` lists them",
        ),
        (
            "block-shuffle blocksize=4",
            "a field of block-shuffle must be one of block_size, window, seed; got 'blocksize'; "
            "did you mean block_size? `indexplan orders` lists them",
        ),
        (
            "shuffle num_samples=4",
            "a field of shuffle must be one of seed; got 'num_samples'; `indexplan orders` lists "
            "them",
        ),
        (
            "test-many a=half",
            "a must be a number, such as 0.5; got 'half'; write it so",
        ),
        (
            "test-many a=1 rows=1",
            "rows of test-many must be of a type that text can hold: int, float, str, bool, "
            "Column; got 'list[int]'; build the plan in Python",
        ),
        (
            "shuffle seed=1.5",
            "seed must be an integer, such as 4096 or 1e6; got '1.5'; write it so",
        ),
        ("shuffle seed=1 seed=2", "seed must be given once; got '1 and 2'; leave one of them out"),
        (
            "shuffle seed=",
            "seed must be an integer, such as 4096 or 1e6; got ''; write it so",
        ),
    ],
)  # fmt: skip
def test_wrong_text(text: str, said: str) -> None:
    """What cannot be read says what can, and what was probably meant."""
    ip.register(Many)
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(said)}$"):
        order_from_text(text, 10)


def test_versions() -> None:
    """Of several versions of a kind none is guessed; the algorithm's whole name tells which."""

    @dataclass(frozen=True, eq=False)
    class Second(ip.Shuffle):
        algorithm = "shuffle-v2"

    ip.register(Second)
    with pytest.raises(ip.IndexPlanError, match="must be one of shuffle-v1, shuffle-v2; got 'shuf"):
        order_from_text("shuffle", 10)
    assert isinstance(order_from_text("shuffle-v2", 10), Second)
    assert ip.Shuffle(10) == order_from_text("shuffle-v1", 10)


def test_a_kind_without_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """A registered class that is no dataclass is no kind that text can name, and no obstacle."""

    class Bare(ip.Order):
        algorithm = "bare-v1"

        def __init__(self, num_samples: int) -> None:
            self.num_samples = num_samples

    ip.register(Bare)
    assert "bare" not in run(capsys, "orders")
    with pytest.raises(
        ip.IndexPlanError, match=r"^the kind of an order must be one of .*got 'bare'"
    ):
        order_from_text("bare", 10)


def test_other_number_of_samples() -> None:
    """An order that counts its samples by itself has to come to the number that was given."""
    ip.register(Many)
    told = "10, as the fields of test-many tell"
    said = f"^num_samples must be {told}; got 9; leave it out, or change the fields$"
    with pytest.raises(ip.IndexPlanError, match=said):
        order_from_text("test-many a=1", 9)


@pytest.mark.parametrize("order", OURS.values())
def test_every_field_is_described(order: type[ip.Order]) -> None:
    """Each field of an order of ours has its type, its default and a line; text can hold it."""
    kind = Kind.of(order)
    assert f"{kind.kind}-v1" == kind.algorithm
    assert kind.words in (order.__doc__ or "")
    names = [each.name for each in fields(order) if each.name != "num_samples"]  # type: ignore[arg-type]
    assert names == [each.name for each in kind.fields]
    for each in kind.fields:
        assert each.type in READERS
        assert each.words
    text = [f"{each.name}=3" for each in kind.fields if each.required]
    made = order_from_text(kind.kind, 10, text).to_dict()
    assert [each.default for each in kind.fields if not each.required] == [
        made[each.name] for each in kind.fields if not each.required
    ]


def test_descriptions() -> None:
    """Names may share a description, which is put in one line; other sections are none of it."""
    kind = Kind.of(Many)
    assert ("test-many", "Many fields.") == (kind.kind, kind.words)
    words = {each.name: each.words for each in kind.fields}
    both = "Two numbers, in one line."
    assert {"a": both, "b": both, "name": "A text.", "rows": ""} == words
    assert ["float", "str", "float", "list[int]"] == [each.type for each in kind.fields]
    assert [True, False, False, False] == [each.required for each in kind.fields]

    @dataclass(frozen=True, eq=False)
    class Bare(Own):
        size: int
        algorithm = "test-bare-v1"

    assert "test-bare\n    size          int" == str(Kind.of(Bare))


def test_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """`indexplan orders` lists what `--order` takes, in words and as JSON."""
    said = run(capsys, "orders")
    assert (
        "sequential: Every epoch reads samples 0, 1, 2, ... in turn.\n\n"
        "shuffle: Every epoch reads all samples once, in a new random order that the seed "
        "determines.\n    seed          int, 0      0 <= seed < 2**128. Each seed, "
    ) in said
    assert (
        "\n\nOnly in orders that are written as in Python:\n\n"
        "Split: Splits a dataset at random into disjoint parts, such as train and val, without"
    ) in said
    for words in (
        "curriculum: Return an order that reads the easiest",
        "    num_bins      int | None",
    ):
        assert f"\n{words}" in said
    data = json.loads(run(capsys, "orders", "--json"))
    assert ["Split", "curriculum", "folds"] == [each["kind"] for each in data["makers"]]
    assert sorted(OURS) == [each["algorithm"] for each in data["orders"]]
    assert {
        "name": "window",
        "type": "int",
        "required": False,
        "default": 1,
        "words": "Blocks whose samples are shuffled together, 1 <= window < 2**63. More mix "
        "better, and keep more blocks in use at a time.",
    } == data["orders"][0]["fields"][1]


def test_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--order` takes a text, and options of single fields are short for a word of it."""
    words = ["build", "--num-samples", "1e2", "--batch-size", "4"]
    run(capsys, *words, str(tmp_path / "a"), "--order", "block-shuffle block_size=10 window=3")
    short = ["--order", "block-shuffle window=3", "--block-size", "10"]
    run(capsys, *words, str(tmp_path / "b"), *short)
    expected = ip.Plan(ip.BlockShuffle(100, 10, 3), batch_size=4)
    assert expected == ip.load(tmp_path / "a") == ip.load(tmp_path / "b")
    said = fails(capsys, 2, *words, str(tmp_path / "c"), "--order=shuffle seed=1", "--seed=2")
    assert "--seed must be given once; got '1 and 2'; leave one of them out" == said
    said = fails(capsys, 2, *words, str(tmp_path / "c"), "--order", "sequential", "--seed", "2")
    rule = "a field of sequential must be left out, as it has none; got 'seed'"
    assert f"{rule}; `indexplan orders` lists them" == said
    assert not (tmp_path / "c").exists()


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

    line = "    shift         int, 0      Samples that come last instead.\n"
    assert f"backwards: The last sample comes first.\n{line}" in told("orders")
    plan = str(tmp_path / "a.plan")
    spec = ["--num-samples=9", "--batch-size=3", "--world-size=1", "--order", "backwards shift=2"]
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
    assert 2 == main(["bench", "--num-samples", "1e6", "--order", "blocks"])
    assert "did you mean block-shuffle?" in capsys.readouterr().err
