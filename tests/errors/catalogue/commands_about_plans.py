"""Errors of the commands that ask about plans, as in `commands`."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import (
    OPEN,
    Command,
    edited,
    nothing,
    saved,
    spec_file,
    written,
)


def changed_data() -> None:
    """Build a plan for a folder that has another file by now."""
    written("data/a.txt")
    plan = ip.Plan(ip.Sequential(1), batch_size=2)
    ip.save(plan, "a.plan", dataset=ip.Dataset.scan("data"))
    written("data/b.txt")


COMMANDS: list[Command] = [
    # show
    ("show", 2, "indexplan: `indexplan show` needs PLAN; see `indexplan show --help`", nothing),
    (
        "show a.plan",
        1,
        "indexplan: {here}/a.plan must be a plan directory; got nothing there; check the path, "
        "or build it with `indexplan build`",
        nothing,
    ),
    (
        "show a.plan",
        1,
        "indexplan: {here}/a.plan: manifest.json must be as it was written; it was edited; "
        "restore the file, or build the plan again at another path",
        lambda: edited(library_version="9"),
    ),
    (
        "show plan.json",
        1,
        "indexplan: plan.json: a plan must have the fields ['batch_size', 'global_batch_size', "
        "'order', 'partition', 'remainder', 'resumed', 'sub_epochs', 'world_size']; got only "
        "[]; write it with to_json, or read it with the version of indexplan that wrote it",
        lambda: written("plan.json", "{}"),
    ),
    (
        "show plan.json --column rows.npy",
        2,
        "indexplan: a column's path must be that of a .npy file of numbers in one dimension; got "
        "\"{here}/rows.npy ([Errno 2] No such file or directory: '{here}/rows.npy')\"; write it "
        "with np.save",
        spec_file,
    ),
    (
        "show plan.json --rank 1",
        2,
        "indexplan: --rank needs --step; give both, or leave --rank out",
        spec_file,
    ),
    (
        "show plan.json --step 1",
        2,
        "indexplan: --step needs --epoch; give both, or leave --step out",
        spec_file,
    ),
    (
        "show plan.json --sub-epoch 1",
        2,
        "indexplan: --sub-epoch needs --epoch; give both, or leave --sub-epoch out",
        spec_file,
    ),
    (
        "show plan.json --epoch 0 --step 99",
        2,
        "indexplan: --step must be an unfinished step of epoch 0 from 0 to 2; got 99; see how "
        "many there are with `indexplan show`",
        spec_file,
    ),
    (
        "show plan.json --epoch 0 --step x",
        2,
        "indexplan: --step must be an integer, such as 1000000 or 1e6; got 'x'; see `indexplan "
        "show --help`",
        spec_file,
    ),
    (
        "show plan.json --epoch 0 --step 0 --rank 2",
        2,
        "indexplan: --rank must be an integer from 0 to 1; got 2; use --world-size to change how "
        "many ranks there are",
        spec_file,
    ),
    (
        "show plan.json --epoch 0 --step 0",
        2,
        "indexplan: --world-size must be set for this; got none; use --world-size, with the "
        "number of running ranks",
        lambda: spec_file(OPEN),
    ),
    (
        "show plan.json --epoch -1",
        2,
        "indexplan: --epoch must be an integer from 0 to 2**32 - 1; got -1; count from 0; a run "
        "ends with epoch 2**32 - 1",
        spec_file,
    ),
    (
        "show plan.json --epoch 0 --sub-epoch 1",
        2,
        "indexplan: --sub-epoch must be the integer 0; got 1; leave it out for the whole epoch",
        spec_file,
    ),
    (
        "show plan.json --world-size 0",
        2,
        "indexplan: --world-size must be an integer from 1 to 2**31 - 1; got 0; leave it out to "
        "keep it open",
        spec_file,
    ),
    (
        "show a.plan --column a.npy",
        2,
        "indexplan: --column needs a plan in a .json file, as a plan directory has its columns; "
        "got a.plan; leave --column out",
        saved,
    ),
    (
        "show plan.json --dataset data",
        2,
        "indexplan: --dataset needs a plan directory, which remembers its dataset; got "
        "plan.json; leave --dataset out",
        lambda: (spec_file(), written("data/a.txt")),
    ),
    (
        "show plan.json --pattern *.jpg",
        2,
        "indexplan: --pattern needs --dataset; add --dataset with a folder",
        spec_file,
    ),
    (
        "show a.plan --dataset data",
        1,
        "indexplan: --dataset must be the one that the plan was built for; got another: it had 1 "
        "sample, has 2; files were added, removed or renamed; sizes of files changed; restore "
        "the dataset, or build a new plan for this one",
        changed_data,
    ),
    # plot
    (
        "plot plan.json",
        2,
        "indexplan: `indexplan plot` needs -o/--output; see `indexplan plot --help`",
        spec_file,
    ),
    (
        "plot plan.json -o a.png --kind pie",
        2,
        "indexplan: --kind must be one of reading, batch-sizes, schedule, mixing, coverage, "
        "draws, padding, work; got 'pie'; see `indexplan plot --help`",
        spec_file,
    ),
    (
        "plot plan.json -o a.gif",
        2,
        "indexplan: a picture's path must end with .png or .svg or .pdf; got 'a.gif'; end it with "
        "one of these",
        spec_file,
    ),
    (
        "plot plan.json -o a.png",
        1,
        "indexplan: a.png must be a new file; got one that exists; choose another path, or "
        "delete the file",
        lambda: (spec_file(), written("a.png")),
    ),
    (
        "plot plan.json -o a.png --window 3",
        2,
        "indexplan: --window needs --kind mixing; got reading; use that kind, or leave --window "
        "out",
        spec_file,
    ),
    (
        "plot plan.json -o a.png --kind mixing --window 0",
        2,
        "indexplan: --window must be an integer from 1 to 2**63 - 1; got 0; pass how many steps "
        "are looked at together",
        spec_file,
    ),
    (
        "plot plan.json -o a.png --epoch x",
        2,
        "indexplan: --epoch must be an integer, such as 1000000 or 1e6; got 'x'; see `indexplan "
        "plot --help`",
        spec_file,
    ),
    (
        "plot plan.json -o a.png",
        2,
        "indexplan: --world-size must be set for this; got none; use --world-size, with the "
        "number of running ranks",
        lambda: spec_file(OPEN),
    ),
    # locate
    (
        "locate plan.json --index 1",
        2,
        "indexplan: `indexplan locate` needs --epoch; see `indexplan locate --help`",
        spec_file,
    ),
    (
        "locate plan.json --epoch 1",
        2,
        "indexplan: `indexplan locate` needs --index; see `indexplan locate --help`",
        spec_file,
    ),
    (
        "locate plan.json --index 1.5 --epoch 0",
        2,
        "indexplan: --index must be an integer, such as 1000000 or 1e6; got '1.5'; see "
        "`indexplan locate --help`",
        spec_file,
    ),
    (
        "locate plan.json --index 10 --epoch 0",
        2,
        "indexplan: --index must be from 0 to 9; got 10; name one of the order's 10 samples",
        spec_file,
    ),
    (
        "locate plan.json --index 1 --epoch 0",
        2,
        "indexplan: --world-size must be set for this; got none; use --world-size, with the "
        "number of running ranks",
        lambda: spec_file(OPEN),
    ),
    # explain
    (
        "explain plan.json",
        2,
        "indexplan: `indexplan explain` needs --index; see `indexplan explain --help`",
        spec_file,
    ),
    (
        "explain plan.json --index 10",
        2,
        "indexplan: --index must be an integer from 0 to 9; got 10; name one of the order's 10 "
        "samples",
        spec_file,
    ),
    (
        "explain plan.json --index 1 --epochs 0",
        2,
        "indexplan: --epochs must be an integer from 1 to 4294967296; got 0; leave it out",
        spec_file,
    ),
    (
        "explain plan.json --index 1",
        2,
        "indexplan: --world-size must be set for this; got none; use --world-size, with the "
        "number of running ranks",
        lambda: spec_file(OPEN),
    ),
    # diff
    (
        "diff plan.json",
        2,
        "indexplan: `indexplan diff` needs B; see `indexplan diff --help`",
        spec_file,
    ),
    (
        "diff plan.json b.json",
        1,
        "indexplan: {here}/b.json must be a plan directory; got nothing there; check the path, "
        "or build it with `indexplan build`",
        spec_file,
    ),
    (
        "traffic plan.json --shards sizes.npy --epochs 0",
        2,
        "indexplan: --epochs must be an integer from 1 to 4294967296; got 0; leave it out for 1",
        spec_file,
    ),
    (
        "diff plan.json plan.json --epochs x",
        2,
        "indexplan: --epochs must be an integer, such as 1000000 or 1e6; got 'x'; see `indexplan "
        "diff --help`",
        spec_file,
    ),
]
