"""What a user types who follows the cure of a command's error: by the command that was wrong.

A text is typed; a call is what is done to the files before. The error is met first, with the files
that the catalogue puts there, and each text has to end with exit code 0.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import indexplan as ip
from tests.errors.catalogue import balance, commands, commands_about_files
from tests.errors.catalogue.ledgers import ledger
from tests.errors.catalogue.made import WHOLE, array, saved, spec_file, written

Step = str | Callable[[], Any]

BUILD, BENCH, BALANCED = commands.BUILD, commands_about_files.BENCH, balance.BUILD
ORDER = "build a.plan --batch-size 2 --order"
SPEC = "show plan.json"
RUN = "ledger run.ledger"
ACCOUNT = f"{RUN} account"
AS_WRITTEN = f"{ORDER} 'Epochs(Shuffle(1000000), 50000)'"


def moved(path: str, to: str) -> Callable[[], Any]:
    """Return a call that renames a file."""
    return lambda: Path(path).rename(to)


def gone(path: str) -> Callable[[], Any]:
    """Return a call that deletes a file."""
    return lambda: Path(path).unlink()


def restored(path: str, plan: str) -> Callable[[], Any]:
    """Return a call that restores a file of a plan directory from its copy."""

    def do() -> None:
        saved("copy.plan")
        Path("copy.plan", path).replace(Path(plan, path))

    return do


# by what was typed: what is typed, or done, instead
CURED_COMMANDS: dict[str, tuple[Step, ...]] = {
    # words
    "--quiet": ("--help",),
    "frobnicate": ("--help",),
    "show a.plan --colour red": ("--help", "show --help"),
    "orders BlokShuffle": ("orders BlockShuffle", "orders"),
    "build a.plan --s=1": (f"{BUILD} --sub-epochs=1",),
    # build: what it needs
    **dict.fromkeys(
        ("build", "build a.plan"),
        ("build run.plan --num-samples 1e6 --world-size 8 --batch-size 32",),
    ),
    "build a.plan --batch-size 2": (
        lambda: array("data.npy", [1, 2, 3]),
        "build a.plan --batch-size 2 --dataset data.npy",
        "build b.plan --batch-size 2 --shards data.npy",
        "build c.plan --batch-size 2 --num-samples 3",
    ),
    f"{BUILD} --dataset data": ("build b.plan --batch-size 2 --dataset data", BUILD),
    "build a.plan --batch-size 2 --dataset data --shards data": (
        lambda: array("a.npy", [1, 2]),
        "build a.plan --batch-size 2 --shards a.npy",
    ),
    "build a.plan --batch-size 2 --dataset data --shards sizes.npy": (
        "build a.plan --batch-size 2 --shards sizes.npy",
    ),
    "build a.plan --num-samples 9": (BUILD, "build b.plan --num-samples 9 --global-batch-size 2"),
    f"{BUILD} --global-batch-size 2": (BUILD,),
    # build: numbers and words
    "build a.plan --num-samples many --batch-size 2": ("build --help",),
    "build a.plan --num-samples 0 --batch-size 2": (BUILD,),
    "build a.plan --num-samples 9 --batch-size x": (BUILD,),
    f"{BUILD} --world-size 1.5": (f"{BUILD} --world-size 2",),
    f"{BUILD} --world-size 0": (BUILD,),
    f"{BUILD} --sub-epochs 0": (BUILD,),
    f"{BUILD} --remainder wrap": ("build --help", f"{BUILD} --remainder pad"),
    f"{BUILD} --epochs 0": (BUILD,),
    f"{BUILD} --epochs": ("build --help", f"{BUILD} --epochs 2"),
    f"{BUILD} --part 2": (f"{BUILD} --part 1/4", BUILD),
    f"{BUILD} --part 5/4": (f"{BUILD} --part 4/4",),
    f"{BUILD} --import not_there": (f"{BUILD} --import json",),
    "build no/a.plan --num-samples 9 --batch-size 2": (BUILD,),
    "build zz://a.plan --num-samples 9 --batch-size 2": (BUILD.replace("a.plan", "memory://a"),),
    # build: where something is
    **{
        words: (words.replace("a.plan", "b.plan"),)
        for words in (BUILD, f"{BUILD} --order 'Repeat(Shuffle(), 2)'")
    },
    "build a.plan --dataset data --batch-size 2": (
        lambda: written("data/a.txt"),
        "build a.plan --dataset data --batch-size 2",
    ),
    "build a.plan --dataset data --pattern *.jpg --batch-size 2": (
        "build a.plan --dataset data --pattern *.txt --batch-size 2",
        "build b.plan --dataset data --batch-size 2",
    ),
    f"{BUILD} --pattern *.jpg": (
        lambda: written("data/a.jpg"),
        "build a.plan --batch-size 2 --dataset data --pattern *.jpg",
    ),
    # orders
    **{
        f"{ORDER} {words}": (f"{ORDER} {cured}",)
        for words, cured in {
            "'Epochs(3)'": "'Epochs(Shuffle(3), epoch_size=2)'",
            "'Epochs(Shuffle(3), 0)'": "'Epochs(Shuffle(3), 2)'",
            "'Shuffle(*[3])'": "'Shuffle(3)'",
            "\"Mixture({'a': Shuffle(3), 'a': Shuffle(4)}, [1])\"": (
                "\"Mixture({'a': Shuffle(3)}, {'a': 1})\""
            ),
            "'Shuffle(3, 4, 5)'": "'Shuffle(3, 4)'",
            "'Shuffle(9, num_samples=9)'": "'Shuffle(9)'",
            "'Shuffle(seed=1)'": "'Shuffle(num_samples=9, seed=1)'",
            "Shuffle": "'Shuffle(9)'",
            "shuffle": "'Shuffle(9)'",
            "'Shuffle(9, seed=1, seed=2)'": "'Shuffle(9, seed=1)'",
            "'Shuffle(Shuffle)'": "'Epochs(Shuffle(3), 2)'",
            "'Shufle(3)'": "'Shuffle(3)'",
            "'Shuffle(3, sed=1)'": "'Shuffle(3, seed=1)'",
            "'Shuffle(3, seed=10**1000)'": "'Shuffle(3, seed=10)'",
            "'Shuffle(10)' --num-samples 9": "'Shuffle(10)' --num-samples 10",
        }.items()
    },
    **{
        f"{ORDER} {words}": (AS_WRITTEN,)
        for words in (
            "'Subset(Shuffle(3), Shuffle(3).fill, 3)'",
            "'Shuffle(3) + 1'",
            "'Shuffle(3'",
            "'Mixture({[1]: Shuffle(3)}, [1])'",
        )
    },
    **{
        f"{ORDER} {words}": ("orders", f"{ORDER} '{cured}'")
        for words, cured in {
            "'range(3)'": "Sequential(3)",
        }.items()
    },
    **{
        f"{BUILD} --order {words}": (f"{BUILD} --order {cured}",)
        for words, cured in {
            "block-shuffle": "'BlockShuffle(block_size=2)'",
            "'BlockShuffle()'": "'BlockShuffle(block_size=2)'",
            "'Shuffle(seed=-1)'": "'Shuffle(seed=1)'",
        }.items()
    },
    f"{BUILD} --order ''": (AS_WRITTEN,),
    f"{BUILD} --order 'Odd()'": (f"{BUILD} --order 'Shuffle(9)'",),
    f"{BALANCED} ''": (
        lambda: array("lengths.npy", [1, 2, 3]),
        f"{BALANCED} \"Balance('lengths.npy')\"",
    ),
    **{
        f"{BALANCED} {words}": (
            lambda: (array("a.npy", [1, 2, 3]), array("lengths.npy", [1, 2, 3])),
            f"{BALANCED} \"Balance('{name}.npy')\"",
        )
        for words, name in {
            "a.npy": "a",
            "3": "lengths",
            "\"Balance('a.npy')\"": "a",
        }.items()
    },
    f"{BALANCED} 'Balance([1, 2, 3], squared=1)'": (
        f"{BALANCED} 'Balance([1, 2, 3], quadratic=1)'",
    ),
    f"{BALANCED} 'Balance([1, 2, 3], quadratic=0.5)'": (
        f"{BALANCED} 'Balance([1, 2, 3])'",
        f"{BALANCED.replace('a.plan', 'b.plan')} 'Balance([1, 2, 3], linear=2, quadratic=1)'",
    ),
    # shards
    "show a.plan --shards sizes.npy": (
        lambda: (written("data/a.npy"), array("data/a.npy", [1, 2, 3])),
        "shards data --json",
        lambda: Path("shards.json").write_text(ip.shard_sizes("data").to_json()),
        "build b.plan --shards shards.json --batch-size 2",
        "show b.plan --shards data",
        "show b.plan --shards shards.json",
    ),
    "shards a.plan": (
        lambda: array("sizes.npy", [600, 400]),
        "shards --plan a.plan sizes.npy",
    ),
    "shards sizes.npy --plan plan.json --epochs 0": (
        lambda: array("sizes.npy", [6, 4]),
        "shards sizes.npy --plan plan.json",
    ),
    "shards": (lambda: array("a.npy", [1]), "shards a.npy"),
    "shards data --epochs 9": (
        lambda: (written("data/a.npy"), array("data/a.npy", [1, 2, 3])),
        "shards data",
    ),
    "shards sizes.npy --plan plan.json --whole-files": (
        lambda: array("sizes.npy", [6, 4]),
        "shards sizes.npy --plan plan.json",
    ),
    # show
    "show": (saved, "show a.plan"),
    "show a.plan": (saved, "show a.plan"),
    "show a.plan  # again, 2": (restored("plan.json", "a.plan"), "show a.plan"),
    SPEC: (spec_file, SPEC),
    f"{SPEC} --column rows.npy": (lambda: array("rows.npy", [1]), f"{SPEC} --column rows.npy"),
    f"{SPEC} --rank 1": (f"{SPEC} --rank 1 --step 0", SPEC),
    f"{SPEC} --stop 5": (SPEC,),
    f"{SPEC} --stop 5 --epoch 1": (f"{SPEC} --epoch 1",),
    f"{SPEC} --most-epochs four": ("show --help",),
    f"{SPEC} --step 99": (SPEC, f"{SPEC} --step 2"),
    f"{SPEC} --epoch 0 --step 99": (SPEC, f"{SPEC} --epoch 0 --step 2"),
    f"{SPEC} --epoch 0 --step x": ("show --help", f"{SPEC} --epoch 0 --step 1"),
    f"{SPEC} --sub-epoch 1": (SPEC,),
    f"{SPEC} --epoch 0 --sub-epoch 1": (f"{SPEC} --epoch 0",),
    "show data": (saved, "show a.plan"),
    "show spec.txt": (saved, "show a.plan"),
    f"{SPEC} --epoch 0 --step 0 --rank 2": (f"{SPEC} --epoch 0 --step 0 --rank 2 --world-size 3",),
    f"{SPEC} --epoch 0 --step 0": (f"{SPEC} --epoch 0 --step 0 --world-size 2",),
    f"{SPEC} --epoch -1": (f"{SPEC} --epoch 0",),
    f"{SPEC} --world-size 0": (SPEC,),
    "show a.plan --column a.npy": ("show a.plan",),
    f"{SPEC} --dataset data": (SPEC,),
    f"{SPEC} --pattern *.jpg": (
        lambda: written("data/a.jpg"),
        "build a.plan --dataset data --pattern *.jpg --batch-size 2",
        "show a.plan --dataset data --pattern *.jpg",
    ),
    "show a.plan --dataset data": (gone("data/b.txt"), "show a.plan --dataset data"),
    "locate run.ledger --index 1 --epoch 0": ("locate run.ledger --index 1",),
    "verify run.ledger --world-size 3": ("verify run.ledger",),
    "explain run.ledger --index 1": ("show run.ledger",),
    # plot
    "plot plan.json": ("plot plan.json -o run.png",),
    "plot plan.json -o a.png --kind pie": ("plot --help",),
    "plot plan.json -o a.gif": ("plot plan.json -o a.svg",),
    "plot plan.json -o a.png": (
        "plot plan.json -o b.png",
        gone("a.png"),
        "plot plan.json -o a.png",
    ),
    "plot plan.json -o a.png  # again, 2": ("plot plan.json -o a.png --world-size 2",),
    "plot plan.json -o a.png --epochs 3": (
        "plot plan.json -o a.png --kind sizes --epochs 3",
        "plot plan.json -o b.png",
    ),
    "plot plan.json -o a.png --epoch x": ("plot --help",),
    "plot run.ledger -o a.png --world-size 3": ("plot run.ledger -o a.png",),
    "plot nowhere -o a.png --kind life": ("plot run.ledger -o a.png --kind life",),
    # locate, explain and diff
    "locate plan.json": ("locate plan.json --index 7",),
    "locate plan.json --index 1.5 --epoch 0": ("locate --help",),
    "locate plan.json --index 10 --epoch 0": ("locate plan.json --index 9 --epoch 0",),
    "locate plan.json --index 1 --epoch 0": (
        "locate plan.json --index 1 --epoch 0 --world-size 2",
    ),
    "explain plan.json": ("explain plan.json --index 7",),
    "explain plan.json --index 10": ("explain plan.json --index 9",),
    "explain plan.json --index 1 --epochs 0": ("explain plan.json --index 1",),
    "explain plan.json --index 1": ("explain plan.json --index 1 --world-size 2",),
    "diff plan.json": (saved, "diff plan.json a.plan"),
    **{
        f"diff plan.json b.json{option}": (
            lambda: written("b.json", WHOLE.to_json()),
            f"diff plan.json b.json{option}",
            BUILD,
            "diff plan.json a.plan --world-size 2",
        )
        for option in ("", " --exit-code")
    },
    "diff plan.json plan.json --epochs x": ("diff --help",),
    "diff plan.json plan.json --world-size 1,2,3": (
        "diff --help",
        "diff plan.json plan.json --world-size 1,2",
    ),
    "diff run.ledger run.ledger --epochs 1": ("diff run.ledger run.ledger",),
    # verify, export and bench
    "verify": (saved, "verify a.plan"),
    "verify a.plan --world-size 0": ("verify a.plan",),
    "verify a.plan": (BUILD, "verify a.plan"),
    "export plan.json": ("export plan.json arrays",),
    "export plan.json out --epoch -1": ("export plan.json out --epoch 0",),
    "export plan.json out": ("export plan.json out --world-size 2",),
    "export plan.json out  # again, 2": ("export plan.json other",),
    "bench --batch-size 2": (BENCH,),  # which takes seconds: few are run
    f"{BENCH} --remainder drop --world-size 9": (
        f"{BENCH.replace('size 2', 'size 1')} --remainder drop --world-size 9",
    ),
    # ledgers
    **dict.fromkeys(
        (
            f"{RUN} account",
            "ledger data account",
            "ledger notes.txt account",
            "ledger a.plan account",
            "ledger spec.json account",
        ),
        (lambda: Path("run.ledger").unlink(missing_ok=True), ledger, ACCOUNT),
    ),
    "ledger": (ledger, ACCOUNT),
    "ledger nowhere account": (ACCOUNT,),
    f"{RUN} sum": ("ledger --help",),
    f"{RUN} account --epoch 2": (ACCOUNT,),
    f"{RUN} account --step 1": (ACCOUNT, f"{RUN} replay --step 1"),
    f"{RUN} replay": (f"{RUN} replay --step 0",),
    f"{RUN} replay --step x": ("ledger --help", f"{RUN} replay --step 1"),
    f"{RUN} replay --step 3": ("show run.ledger", f"{RUN} replay --step 2"),
    "show run.ledger --epoch 0": ("show run.ledger",),
    "show run.ledger --step 0 --rank 2": ("show run.ledger --step 0 --rank 1",),
    "locate run.ledger --index 10": ("locate run.ledger --index 9",),
    "diff run.ledger nowhere": ("diff run.ledger run.ledger",),
    "verify plan.json --checkpoint 1": ("verify plan.json",),
}
