"""Each sentence of SECURITY.md is shown by a test: a sentence without one fails here."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset
from tests.support.forging import rewritten

ROOT = Path(__file__).parents[1]
HERE, SHARDS = "tests/test_security.py", "tests/shards/test_hostile.py"

# how a sentence begins: the tests that show it, as FILE::NAME; none for advice to the reader
SHOWN: dict[str, tuple[str, ...]] = {
    "**Plan directories, exports, and JSON** of plans": (
        "tests/files/test_no_code.py::test_plan_directories_run_no_code",
        "tests/files/test_no_code.py::test_columns_run_no_code",
        "tests/files/test_no_code.py::test_datasets_run_no_code",
        f"{HERE}::test_exports_run_no_code",
    ),
    "A damaged or edited plan directory is refused": (
        "tests/files/test_fuzz_files.py::test_edited_bytes",
        "tests/files/test_flipped_bits.py::test_drawn_flips",
        "tests/files/test_cache.py::test_a_kept_copy_that_was_edited",
    ),
    "JSON that is damaged or hostile": (
        "tests/files/test_fuzz_files.py::test_forged_json",
        "tests/laws/test_pathological.py::test_hostile_json_is_refused",
        f"{HERE}::test_edited_json_is_another_plan",
    ),
    "Exported arrays have no checksums": (f"{HERE}::test_edited_exports",),
    "Links, pipes and devices in the place": (
        "tests/files/test_hostile_places.py::test_other_things_than_files",
        "tests/files/test_hostile_places.py::test_links_to_the_right_file",
        "tests/files/test_hostile_places.py::test_device_in_place_of_a_plan",
    ),
    "No module is imported by a name in them": (
        f"{HERE}::test_names_of_orders_import_nothing",
        "tests/errors/test_names_in_json.py::test_orders",
        "tests/errors/test_names_in_json.py::test_plans_cursors_balance_and_shards",
        "tests/errors/test_names_in_json.py::test_plan_directories",
    ),
    "Files of shards are only looked for": (
        f"{HERE}::test_shards_lead_nowhere_else",
        "tests/errors/test_every_error.py::test_error",
    ),
    "**Indexes of shards and tables**": ("tests/shards/test_damage.py::test_damaged_anywhere",),
    "Nothing is unpickled": (f"{SHARDS}::test_nothing_is_unpickled",),
    "No index names a file outside": (
        f"{SHARDS}::test_names_that_lead_out",
        f"{SHARDS}::test_links_and_pipes",
    ),
    "An index may claim any number": (
        f"{SHARDS}::test_huge_counts",
        f"{SHARDS}::test_headers_of_arrays",
    ),
    "At most 256 MiB of an index": (f"{SHARDS}::test_long_files",),
    "What is longer, nested too deeply": (
        f"{SHARDS}::test_long_files",
        f"{SHARDS}::test_deep_nesting",
        f"{SHARDS}::test_huge_counts",
        f"{SHARDS}::test_links_and_pipes",
    ),
    '**`--order "..."`** on the command line': (f"{HERE}::test_orders_as_text_are_not_evaluated",),
    "**Ledgers** hold no code": (
        "tests/ledger/test_forged_ledgers.py::test_forged_lines_are_refused_or_answered",
        "tests/ledger/test_forged_ledgers.py::test_legal_moves_are_accepted_and_answered",
        "tests/ledger/test_forged_ledgers.py::test_a_plan_without_a_number_of_ranks",
        "tests/ledger/test_forged_ledgers.py::test_verify_says_which_line_has_no_such_place",
    ),
    "A file of more than 1 GiB": (
        "tests/ledger/test_forged_ledgers.py::test_a_file_of_many_bytes",
    ),
    "A line may cover at most 16,384": (
        "tests/ledger/test_forged_ledgers.py::test_no_line_asks_for_endless_work",
        "tests/ledger/test_forged_ledgers.py::test_a_long_stretch_has_several_lines",
    ),
    "Run `verify` before you ask": (
        "tests/ledger/test_changed_files.py::test_each_change_of_a_byte_is_seen",
        "tests/ledger/test_forged_ledgers.py::test_a_plan_of_another_run_is_a_problem",
    ),
    "**States of loaders**": (f"{HERE}::test_states_are_read_as_weights",),
    "**Other users of the machine**": (
        "tests/files/test_cache.py::test_planted",
        "tests/files/test_cache.py::test_planted_by_another_user",
        "tests/stores/test_tables.py::test_a_folder_that_is_not_ours_alone",
        "tests/stores/test_tables.py::test_a_planted_table",
        "tests/together/test_sharded_trust.py::test_planted_folders",
        "tests/together/test_sharded_trust.py::test_planted_links",
        "tests/together/test_sharded_trust.py::test_planted_by_another_user",
    ),
    "A shard whose bytes have changed": (
        "tests/together/test_sharded_trust.py::test_damaged_shard",
        "tests/stores/test_tables.py::test_a_damaged_table_is_built_again",
    ),
    "A fingerprint (`indexplan show`)": (
        "tests/plan/test_values.py::test_fingerprints_are_sha256_of_the_canonical_json",
    ),
    "`indexplan verify` compares every byte": (
        "tests/files/test_hostile_files.py::test_edited_chunk",
        "tests/files/test_hostile_files.py::test_swapped_chunks",
    ),
    "Checksums in a directory find damage": (f"{HERE}::test_whoever_writes_can_forge_checksums",),
    "**The environment**": ("tests/cli/test_orders.py::test_an_order_of_ones_own",),
    "`--import MODULE` imports a module": (
        "tests/cli/test_orders.py::test_what_cannot_be_imported",
    ),
    "**numba's cache** holds machine code": (
        "tests/together/test_compiling.py::test_a_planted_cache_runs",
    ),
    "Do not let others write to the folder": (
        "tests/together/test_compiling.py::test_a_planted_cache_runs",
    ),
    "**Your own orders**": ("tests/cli/test_orders.py::test_an_order_of_ones_own",),
    "**Workers and clusters**": (
        "tests/plan/test_values.py::test_values_are_frozen_hashable_and_copy",
        "tests/together/test_executors.py::test_order_that_cannot_be_pickled",
    ),
    "Do not join a Dask scheduler": ("tests/files/test_no_code.py::test_the_trap_works",),
    "**Stores of shards**": (
        "tests/together/test_sharded_replaced.py::test_rewritten_file",
        "tests/together/test_sharded_replaced.py::test_short_answers",
    ),
    "A store that sends different samples": (f"{HERE}::test_a_store_that_lies_is_believed",),
    "**Columns and chunks are mapped**": (
        "tests/orders/test_edited_columns.py::test_cut_short",
        f"{HERE}::test_a_mapped_file_that_is_cut_off",
    ),
    "Files that others can write to should be": (f"{HERE}::test_a_mapped_file_that_is_cut_off",),
    "**Files that parse**": ("tests/shards/test_damage.py::test_damaged_anywhere",),
    "The credentials of object stores": (
        "tests/together/test_remote_access.py::test_secrets_stay_where_they_are",
    ),
}


def sentences() -> list[str]:
    """Return the sentences of the page that claim something."""
    claims = (ROOT / "SECURITY.md").read_text().split("## What may come")[1]
    claims = re.sub(r"^(.*|## .*)$", r"\1", claims.partition("\n")[2], flags=re.MULTILINE)
    blocks = re.split(r"\n\n|\n(?=- )", re.sub(r"## .*\n", "\n", claims))
    texts = [" ".join(block.split()).removeprefix("- ") for block in blocks]
    return [each for text in texts for each in re.split(r"(?<=\.) (?=[A-Z`*])", text) if each]


def test_each_sentence_is_shown() -> None:
    """Each begins as one that is listed here, and nothing else is listed."""
    found = [[key for key in SHOWN if each.startswith(key)] for each in sentences()]
    assert [] == [each for each, keys in zip(sentences(), found, strict=True) if len(keys) != 1]
    assert sorted(SHOWN) == sorted(key for keys in found for key in keys)


@pytest.mark.parametrize("shown", SHOWN)
def test_the_tests_are_there(shown: str) -> None:
    """Each is a function of the file that it is said to be in."""
    for test in SHOWN[shown]:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, test


def test_exports_run_no_code(tmp_path: Path) -> None:
    """What is exported is JSON and arrays without pickles."""
    ip.export(ip.Plan(ip.Shuffle(10), world_size=2, batch_size=2), tmp_path / "out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {".npy", ".json"} == {path.suffix for path in files}
    for path in files:
        if path.suffix == ".npy":
            np.load(path, allow_pickle=False)
        else:
            json.loads(path.read_text())


def test_edited_json_is_another_plan() -> None:
    """What a text says within the rules is taken for meant; its fingerprint tells."""
    plan = ip.Plan(ip.Shuffle(10, seed=1), world_size=2, batch_size=2)
    edited = ip.Plan.from_json(plan.to_json().replace('"seed":1', '"seed":2'))
    assert plan.replace(order=ip.Shuffle(10, seed=2)) == edited
    assert plan.fingerprint != edited.fingerprint


def test_edited_exports(tmp_path: Path) -> None:
    """An array is read as it is; the same export again compares it."""
    plan = ip.Plan(ip.Shuffle(10), world_size=2, batch_size=2)
    ip.export(plan, tmp_path / "out")
    (path, *_) = tmp_path.glob("out/epoch-*/rank-00000.npy")
    content = bytearray(path.read_bytes())
    content[128] ^= 1
    path.write_bytes(content)
    with pytest.raises(ip.PlanFileError, match=r"rank-00000\.npy must hold"):
        ip.export(plan, tmp_path / "out")


@pytest.mark.parametrize("name", ["../b.npy", "x/../../b.npy", "/etc/passwd", "file:///etc/passwd"])
def test_shards_lead_nowhere_else(name: str, tmp_path: Path) -> None:
    """The JSON of shards cannot name a file outside."""
    np.save(tmp_path / "a.npy", np.arange(100))
    text = ip.shard_sizes(tmp_path / "*.npy").to_json()
    with pytest.raises(ip.IndexPlanError):
        ip.Shards.from_json(text.replace("a.npy", name), path=str(tmp_path))


def test_names_of_orders_import_nothing() -> None:
    """The name of a module, or of something in one, is no name of an order."""
    text = ip.Plan(ip.Shuffle(10), batch_size=2).to_json()
    for name in ("antigravity", "os.system", "indexplan.cli:main", "antigravity:x"):
        with pytest.raises(ip.IndexPlanError):
            ip.Plan.from_json(text.replace("shuffle-v1", name))
    assert "antigravity" not in sys.modules


def test_orders_as_text_are_not_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python in the place of an order is an error of one line."""
    from indexplan.cli import main

    monkeypatch.chdir(tmp_path)
    sizes = ["--num-samples=9", "--batch-size=3", "--world-size=1"]
    for text in (
        "__import__('os').mkdir('sprung')",
        "Shuffle(seed=__import__('os').mkdir('sprung'))",
    ):
        assert 2 == main(["build", "a.plan", *sizes, "--order", text])
    assert [] == list(tmp_path.iterdir())


def test_states_are_read_as_weights() -> None:
    """torch.load reads one that was saved without unpickling classes."""
    loader = PlanLoader(range(10), ip.Plan(ip.Shuffle(10), batch_size=2))
    next(iter(loader))
    saved = io.BytesIO()
    torch.save(loader.state_dict(), saved)
    saved.seek(0)
    assert loader.state_dict() == torch.load(saved, weights_only=True)


def test_whoever_writes_can_forge_checksums(tmp_path: Path) -> None:
    """Chunks of another order, and their hashes, are loaded; only verify finds them."""
    mine, theirs = tmp_path / "mine.plan", tmp_path / "theirs.plan"
    for seed, root in enumerate((mine, theirs)):
        ip.save(ip.Plan(ip.Shuffle(1000, seed=seed), world_size=1, batch_size=4), root)
    for path in theirs.glob("epoch-*/chunk-*"):
        shutil.copyfile(path, mine / path.relative_to(theirs))
    with pytest.raises(ip.PlanFileError, match="must hold the hashes of"):  # they say whose
        ip.load(mine).batch(0, step=0, rank=0)
    rewritten(mine, lambda content: content)
    plan = ip.load(mine)
    assert plan.batch(0, step=0, rank=0).tolist() != ip.Shuffle(1000, seed=0).take(0, 0, 4).tolist()
    assert not ip.verify(plan).ok


def test_a_store_that_lies_is_believed(tmp_path: Path) -> None:
    """Values that were changed in place, with the file's time put back, are read."""
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100))
    shards, times = ip.shard_sizes(path), path.stat()
    np.save(path, np.arange(100) + 7)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    rows = lambda file: np.load(file.path)  # noqa: E731
    dataset = ShardedDataset(shards, rows, cache_dir=tmp_path / "cache", cache_bytes=10**6)
    assert 7 == dataset[0]


def test_a_mapped_file_that_is_cut_off(tmp_path: Path) -> None:
    """Nobody can be told: the kernel ends the process; of a copy it is not so."""
    code = (
        "import os, sys, numpy as np, indexplan as ip\n"
        "np.save('a.npy', np.ones(10**6))\n"
        "column = ip.Column('a.npy')\n"
        "numbers = column.array if sys.argv[1] == 'mapped' else column.array.copy()\n"
        "os.truncate('a.npy', 128)\n"
        "print(numbers[-1])\n"
    )
    for how, expected in (("mapped", -signal.SIGBUS), ("copied", 0)):
        done = subprocess.run(
            [sys.executable, "-c", code, how], cwd=tmp_path, capture_output=True, check=False
        )
        assert expected == done.returncode, done.stderr
