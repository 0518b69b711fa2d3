"""Whatever is wrong with a command, it is said in the command's words, not in those of Python."""

from __future__ import annotations

import argparse
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli.main import in_words_of, main, parser_of_verbs
from indexplan.cli.parsing import Parser
from indexplan.errors import Cure, in_file
from tests.errors.provoking import COMMANDS

VALUES = ("-1", "nowhere")
RIGHT = {  # what verbs need besides the option that is tried; others need a plan
    "build": ["new.plan", "--num-samples=9", "--batch-size=2"],
    "show": ["a.plan", "--epoch=0", "--step=0", "--rank=0"],
    "plot": ["open.json", "-o", "a.png"],
    "shards": ["sizes.npy", "--plan=a.plan"],
    "locate": ["a.plan", "--index=1", "--epoch=0"],
    "explain": ["a.plan", "--index=1"],
    "diff": ["a.plan", "open.json"],
    "ledger": ["run.ledger", "replay", "--step=1"],
    "export": ["a.plan", "out"],
    "bench": ["--num-samples=9", "--batch-size=90", "--remainder=drop"],
}
SHARED = {"--help", "--json", "--import", "--order", "--column"}
ALSO = [  # that errors.txt doesn't have
    ["verify", "a.plan", "--dataset=."],
    ["shards", "nowhere"],
    ["build", "new.plan", "--num-samples=1e18", "--batch-size=2", "--units-per-chunk=1"],
]


@pytest.fixture(autouse=True)
def _plans(here: Path) -> None:
    """Stand in a folder with plans of several kinds."""
    ip.save(ip.Plan(ip.Shuffle(10), world_size=2, batch_size=2, sub_epochs=2), here / "a.plan")
    Path("open.json").write_text(ip.Plan(ip.Shuffle(10), batch_size=2).to_json())
    np.save("sizes.npy", [4, 6])
    ledger = ip.Ledger("run.ledger")
    plan = ip.Plan(ip.Shuffle(10), world_size=2, batch_size=2)
    ledger.record(plan, plan.cursor(1, step=0))


def foreign(message: str, options: list[str]) -> list[str]:
    """What of a message is Python: calls of the library, and fields that are options."""
    what, must, rest = re.split(r"( must | needs? )", message.partition(" ")[2], maxsplit=1)
    said = what + must + rest.rpartition("; ")[2]
    found = re.findall(
        r"plan\.(?!to_json|json\b)\w+\(?|\bip\.\w+|\bindexplan\.\w+|len\(\w+\)", said
    )
    names = [option[2:].replace("-", "_") for option in options]
    wrong = [name for name in names if re.search(rf"(?<![-\w]){name}=", said) or name == what]
    wrong += [name for name in names if "_" in name and re.search(rf"(?<![-\w]){name}\b", said)]
    return found + wrong


def commands() -> Iterator[list[str]]:
    """Every option of every verb, with values that are wrong for most."""
    parser, verbs = parser_of_verbs()
    for verb in sorted(set(verbs.choices) - {"orders"}):
        right = RIGHT.get(verb, ["a.plan"])
        parser.parse_args([verb, *right])  # has all that the verb needs
        for action in verbs.choices[verb]._actions:
            option = next((each for each in action.option_strings if each.startswith("--")), None)
            if option is None or option in SHARED or isinstance(action, argparse._StoreTrueAction):
                continue
            for value in VALUES:
                kept = [word for word in right if word.partition("=")[0] != option]
                yield [verb, *kept, f"{option}={value}"]
    yield from ALSO


def test_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """No wrong value of any option is answered with a field or a call of Python."""
    _, verbs = parser_of_verbs()
    problems, refused = {}, 0
    for words in commands():
        if main(words) == 0:
            continue
        refused += 1
        message = capsys.readouterr().err
        if wrong := foreign(message, [*verbs.choices[words[0]]._option_string_actions]):
            problems[" ".join(words)] = (wrong, message)
    assert {} == problems
    assert refused > 100


def test_the_catalogue() -> None:
    """Nor is any command of errors.txt, which is held to what is said."""
    _, verbs = parser_of_verbs()
    for case in COMMANDS.values():
        verb, message = case.words.partition(" ")[0], case.text.partition(": ")[2]
        if verb in verbs.choices and ".json: " not in message and "--order" not in case.words:
            options = [*verbs.choices[verb]._option_string_actions]
            assert [] == foreign(message, options), message


def test_a_cure_for_both() -> None:
    """A cure in Python's words has the command's too, wherever the error has been."""
    cure = Cure("use plan.replace(rank=0)", "give --rank")
    error = in_file("a.plan", ip.IndexPlanError("rank", "must be 0", None, cure))
    error = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own)
    assert "a.plan: rank must be 0; use plan.replace(rank=0)" == str(error)
    assert "a.plan: rank must be 0; give --rank" == str(in_words_of(None, error))


def test_fields_that_are_options() -> None:
    """An error about what is an option names the option, and no other is touched."""
    parser = Parser()
    parser.add_argument("--sub-epoch")
    for what, expected in (("sub_epoch", "--sub-epoch"), ("epoch", "epoch")):
        said = in_words_of(parser, ip.IndexPlanError(what, "must be sub_epoch", "None", "go"))
        assert f"{expected} must be sub_epoch; got none; go" == str(said)
