"""Answers: every one is frozen, and prints as text, JSON and HTML that say the same."""

import dataclasses
import json
import os
from doctest import DocTestParser
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import indexplan as ip
from indexplan.answers import Answer, Shown, printable_lines
from indexplan.reports.benchmark import Timing
from indexplan.reports.show import show_plan
from tests.support.shell import Shell

PLAN = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="pad")
OPEN = ip.Plan(ip.Sequential(11), global_batch_size=4)
HOSTILE = "<script>a && b</script>\x1b[2J\udc80"
DONE = {"path": HOSTILE, "num_bytes": 1, "num_written": 1, "num_kept": 0, "fingerprint": "f"}

FOLDER = TemporaryDirectory()
LEDGER = ip.Ledger(f"{FOLDER.name}/run.ledger")
LEDGER.record(PLAN, PLAN.cursor(epoch=1, step=1))
MIXED = ip.Mixture({HOSTILE: ip.Shuffle(5), "b": ip.Shuffle(9)}, {HOSTILE: 1, "b": 2})

ANSWERS: list[Answer] = [
    PLAN.account(0),
    OPEN.account(0),
    ip.diff(PLAN, PLAN.replace(batch_size=3)),
    *ip.explain(PLAN, 0),
    ip.draws(ip.Plan(MIXED, world_size=2, batch_size=2)),
    ip.traffic(PLAN, [4, 0, 7], ranks_per_node=1),
    ip.verify(PLAN),
    ip.verify(PLAN).checks[0],
    ip.types.Check(HOSTILE, 3, (HOSTILE,) * 9),
    ip.types.Check("what", 0, skipped="why"),
    ip.types.Saved(**DONE),
    ip.types.Bench(PLAN, 2, (Timing("key", HOSTILE, 0.5, num_indices=3), Timing("k", "n", None))),
    ip.Shards(
        kind=HOSTILE,
        whole_files=True,
        files=[HOSTILE],
        num_bytes=[9],
        digests=["0" * 32],
        parts=[1],
        sizes=[3],
    ),
    LEDGER,
    LEDGER.at(2),
    ip.diff(LEDGER, LEDGER),
    ip.testing.check_order(ip.Sequential(5), fresh_process=False),
    show_plan(PLAN, None, None, None),
    Shown({"name": HOSTILE, "where": PLAN.locate(3, 0)}, HOSTILE),
]


def kinds(of: type[Answer] = Answer) -> set[type[Answer]]:
    """All kinds of answers of the package."""
    found = {kind for kind in of.__subclasses__() if kind.__module__.startswith("indexplan.")}
    return found.union(*map(kinds, found))


def printed(kind: type[Answer]) -> list[Answer]:
    """The answers of a kind that its docstring prints, in an empty folder."""
    found: list[Any] = []
    names: dict[str, Any] = {"print": found.append}
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for example in DocTestParser().get_examples(kind.__doc__ or ""):
                exec(example.source, names)  # noqa: S102 (our own docstring)
        finally:
            os.chdir(before)
    return [answer for answer in found if type(answer) is kind]


for _module in walk_packages(ip.__path__, "indexplan."):
    if not _module.name.endswith("__main__"):
        import_module(_module.name)
for _kind in sorted(kinds() - set(map(type, ANSWERS)), key=lambda kind: kind.__name__):
    ANSWERS += printed(_kind)


def test_every_kind_is_here() -> None:
    """No kind of answer is without an example, above or in its docstring, and so these laws."""
    assert kinds() == {type(answer) for answer in ANSWERS}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_shape(answer: Answer) -> None:
    """An answer is frozen; its JSON reads back as it was, a browser reads its text."""
    if dataclasses.is_dataclass(answer):  # a ledger is none: it grows
        (first, *_) = dataclasses.fields(answer)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(answer, first.name, None)
    assert json.loads(json.dumps(answer.to_dict())) == answer.to_dict()
    assert f"{type(answer).__name__}(" not in str(answer)
    html = answer._repr_html_()
    assert not set("\x1b\udc80") & set(html)
    assert html.encode().isascii()
    found = Outline(html)
    assert ["pre", "/pre"] == found.tags
    assert printable_lines(str(answer)) == found.text


class Outline(HTMLParser):
    """The tags and the text of some HTML, as a browser reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags.append(tag + str(attrs or ""))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.usefixtures("here")
def test_commands_print_answers(shell: Shell) -> None:
    """A command prints an answer's text, or with --json its JSON types."""
    ip.save(PLAN, "a.plan")
    plan = ip.load("a.plan")
    again = ip.export(PLAN, "out")
    again = dataclasses.replace(again, num_written=0, num_kept=again.num_written)
    expected: dict[str, Answer] = {
        "verify a.plan": ip.verify(plan),
        "diff a.plan a.plan": ip.diff(plan, plan),
        "export a.plan out": again,
        "show a.plan": show_plan(plan, plan.order, None, None),
    }
    for words, answer in expected.items():
        assert f"{answer}\n" == shell.run(*words.split())
        assert answer.to_dict() == shell.json(*words.split())
