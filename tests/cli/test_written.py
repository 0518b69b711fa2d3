"""`--order` and `indexplan orders`: orders as they are written in Python, and one's own."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from inspect import cleandoc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.cli.written import order_as_written
from indexplan.orders import registry as known
from tests.support.nested import PLAIN, layers
from tests.support.shell import Shell


@given(layers(layers(PLAIN)))
def test_what_python_writes_is_read(order: ip.Order) -> None:
    """An order's own repr makes it again, unless it holds a column, whose numbers no text has."""
    if not order.columns:
        assert order == order_as_written(repr(order))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ip.Subset(ip.Shuffle(2), 'k.npy', num_samples=10)", ip.Subset(ip.Shuffle(2), [4, 2], 10)),
        (" indexplan.Packed([3, 1, 2], 3)\n", ip.Packed([3, 1, 2], 3)),
        ("Shuffle(10**9, seed=2**100)", ip.Shuffle(10**9, 2**100)),
        ("Part(10, [5, 5], (1,))", ip.types.Part(10, [5, 5], [1])),
        ("Shuffle()", ip.Shuffle(10)),
        ("ip.Shuffle(seed=10**3)", ip.Shuffle(10, seed=1000)),
        ("  Sequential(\n) ", ip.Sequential(10)),
        ("indexplan.BlockShuffle(10, 4)", ip.BlockShuffle(10, 4)),
        ("BlockShuffle(seed=7, window=3, block_size=1_0)", ip.BlockShuffle(10, 10, 3, 7)),
    ],
)
def test_all_that_may_be_written(text: str, expected: ip.Order, here: Path) -> None:
    """Paths, lists and powers, with or without the library's name and the number of samples."""
    np.save(here / "k.npy", [4, 2])
    assert expected == order_as_written(text, {"num_samples": 10})


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os').getcwd()", "open('a')", "eval('1')", "Shuffle(10).take(0, 0, 3)"),
        *("Shuffle(*[3])", "Shuffle(**{'num_samples': 3})", "(lambda: Shuffle(3))()", "Shuffle"),
        *("[Shuffle(3) for _ in range(2)][0]", "Shuffle(3) if True else 0", "(a := Shuffle(3))"),
        *("Shuffle(10**10**10)", "Shuffle(f'{3}')", "Shuffle('a' * 10**9)", "Shuffle(3", ""),
        *("Shuffle.__init__(3)", "range(3)", "Shuffle(3).__class__(4)", "{**{}}", "Shuffle(b'a')"),
        *("(" * 5000 + ")" * 5000, "-" * 9000 + "3", "Shuffle(3)\0", "Shuffle(-Shuffle(3))"),
        *("Shuffle(3).fill", "Shuffle(3).__dict__", "Split(3, {'a': 1}).__class__"),
        *("Shuffle(0**-1)", "Mixture({[1]: Shuffle(3)}, {1: 1})", "Shuffle(1 + 1)"),
    ],
)
def test_nothing_else_is_run(text: str) -> None:
    """Whatever is no order is refused with the rule, and nothing of it is run."""
    with pytest.raises(ip.IndexPlanError, match=r"^an order"):
        order_as_written(text)


OURS = {order.algorithm: order for order in (ip.BlockShuffle, ip.Sequential, ip.Shuffle)}


@pytest.fixture
def _ours(monkeypatch: pytest.MonkeyPatch) -> None:
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
    b: float = 0.5
    rows: list[int] = field(default_factory=list)
    seen: int = field(default=0, init=False)

    algorithm = "test-many-v12"


@pytest.mark.usefixtures("_ours")
def test_a_class_that_is_no_dataclass(shell: Shell) -> None:
    """Whatever is registered can be called."""

    class Bare(ip.Order):
        algorithm = "bare-v1"

        def __init__(self, num_samples: int) -> None:
            self.num_samples = num_samples

    ip.register(Bare)
    assert shell.run("orders").startswith("Bare\nBlockShuffle  Every")
    assert "Bare(num_samples)\n" == shell.run("orders", "Bare")
    assert isinstance(order_as_written("Bare()", {"num_samples": 3}), Bare)


@pytest.mark.usefixtures("_ours")
def test_verb(shell: Shell) -> None:
    """`indexplan orders` lists what `--order` takes, and describes one as its docstring does."""
    assert (
        "Sequential    Every epoch reads samples 0, 1, 2, ... in turn.\n"
        "Shuffle       Every epoch reads all samples once, in a new random order that the seed "
        "determines.\n\n"
        "`indexplan orders KIND` describes one of them.\n"
    ) in shell.run("orders")
    data = shell.json("orders")
    assert sorted(OURS) == [each["algorithm"] for each in data["orders"]]
    words = cleandoc(ip.BlockShuffle.__doc__ or "")
    call = "BlockShuffle(num_samples, block_size, window=1, seed=0)"
    assert f"{call}\n\n{words}\n" == shell.run("orders", "BlockShuffle")
    known = {"name": "BlockShuffle", "algorithm": ip.BlockShuffle.algorithm}
    expected = {**known, "call": call, "words": words}
    assert expected == shell.json("orders", "BlockShuffle")
    ip.register(Many)
    call = "Many(a, name='x y', b=0.5, rows=<factory>)"
    assert f"{call}\n\nMany fields.\n\nOf several types.\n" == shell.run("orders", "Many")


OWN = """
from dataclasses import dataclass
import indexplan as ip

@ip.register
@dataclass(frozen=True, eq=False)
class Lagging(ip.Sequential):
    '''The first sample comes last.'''

    algorithm = "lagging-v1"

    def fill(self, epoch, starts, stops, out):
        super().fill(epoch, starts, stops, out)
        out[:] = (out + 1) % self.num_samples

    def find(self, epoch, indices, most=None):
        return super().find(epoch, (indices - 1) % self.num_samples, most)
"""


@pytest.mark.usefixtures("_ours")
def test_an_order_of_ones_own(here: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--import` makes an order of somebody's own known to the verbs."""
    (here / "lagging_orders.py").write_text(OWN)
    monkeypatch.syspath_prepend(here)

    def told(*words: str) -> str:
        """Return what a new process would say, which knows no order of ours."""
        sys.modules.pop("lagging_orders", None)
        monkeypatch.setattr(known, "_REGISTRY", dict(OURS))
        return shell.run(*words, "--import", "lagging_orders")

    assert "Lagging       The first sample comes last.\n" in told("orders")
    spec = ["--num-samples=4", "--batch-size=2", "--world-size=1", "--order=Lagging()"]
    told("build", "a.plan", *spec)
    assert "1 2\n" == told("show", "a.plan", "--epoch=0", "--step=0", "--rank=0")
    assert "ok  every byte of every chunk" in told("verify", "a.plan")


def test_what_cannot_be_imported(tmp_path: Path, shell: Shell) -> None:
    """A module that fails is one line, as one that is not there."""
    for name, code, ends in (
        ("leaving_orders", "raise SystemExit(0)", "SystemExit: 0"),
        ("broken_orders", "1 / 0", "ZeroDivisionError: division by zero"),
    ):
        (tmp_path / f"{name}.py").write_text(code)
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            said = shell.fails(2, "orders", "--import", name)
        assert f"got '{name}' ({ends}); set " in said
