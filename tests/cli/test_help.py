"""Help: every verb is listed and explained, its examples work."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.cli.main import parser_of_verbs
from indexplan.cli.parsing import ADDRESS

_, VERBS = parser_of_verbs()
NAMES = (*VERBS.choices,)
NUM = 1000  # samples
ELSEWHERE = {"bench"}  # whose examples take seconds: tests/together/test_bench_command.py runs them


def page(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """A page of help."""
    with pytest.raises(SystemExit) as exit_:
        main([*words, "--help"])
    assert 0 == exit_.value.code
    return capsys.readouterr().out


def examples(text: str) -> list[str]:
    """The commands below the heading of examples."""
    (said,) = re.findall(r"^examples?:\n((?:  .*\n?)+)", text, re.MULTILINE)
    return [line.strip() for line in said.replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what examples name: columns, shards, a folder of files, plans and a ledger."""
    made = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        rng = np.random.default_rng(1)
        np.save("lengths.npy", rng.integers(1, 257, NUM))
        np.save("labels.npy", np.arange(NUM) % 5)
        np.save("weights.npy", rng.random(NUM))
        np.save("image_ids.npy", np.arange(NUM))
        np.save("category_ids.npy", np.arange(NUM) % 7)
        np.save("sizes.npy", np.full(10, 10**5))
        for name in ("photos", "data"):
            Path(name).mkdir()
        for number in range(8):
            Path(f"photos/{number}.jpg").write_bytes(b"x")
        for number in range(10):
            pq.write_table(pa.table({"id": np.arange(10**5)}), f"data/{number}.parquet")
        plan = ip.Plan(ip.Shuffle(10**6), world_size=8, batch_size=32)
        ip.save(plan, "run.plan")
        ip.save(plan.replace(batch_size=64), "other.plan")
        photos = ip.Dataset.scan("photos", "*.jpg")
        ip.save(ip.Plan(ip.Shuffle(8), batch_size=4), "photos.plan", dataset=photos)
        mixture = ip.Mixture(
            {"web": ip.Shuffle(700), "code": ip.Shuffle(300)}, {"web": 1, "code": 2}
        )
        ip.save(ip.Plan(mixture, world_size=2, batch_size=4), "mixed.plan", epochs=range(2))
        ledger = ip.Ledger("run.ledger")
        ledger.record(plan, plan.cursor(0, step=20))
    return made


def works(command: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Run a command in the folder."""
    patch.chdir(folder)
    typed, _, file = command.partition(" > ")
    words = shlex.split(typed)
    for variable in [word for word in words if re.match(r"[A-Z_]+=", word)]:
        words.remove(variable)
    assert "indexplan" == words[0]
    with Path(file).open("w") if file else nullcontext(sys.stdout) as out, redirect_stdout(out):
        assert 0 == main(words[1:]), command


@pytest.mark.parametrize("verb", NAMES)
def test_examples_of_verbs(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help of each verb has two examples, which work."""
    found = examples(page(capsys, verb))
    assert 2 == len(set(found))
    for command in found:
        assert re.search(rf"(?:^|\s)indexplan {verb}\b", command)
        if verb not in ELSEWHERE:
            works(command, folder, monkeypatch)


def test_every_verb_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each verb has a line in the help of all, as its own help begins."""
    text = page(capsys)
    assert text.endswith(f"\n\ndocumentation: {ADDRESS}\n")
    found = re.findall(r"^    ([a-z-]+) {2,}(\S.*)$", text, re.MULTILINE)
    assert [*NAMES] == [name for name, _ in found]
    for name, words in found:
        assert VERBS.choices[name].description.lower().startswith(words.lower().split()[0])
