"""Errors of the command line: the command, its exit code, the last line on stderr, what is there.

Before the last line of a wrong word, argparse says how the verb is used.
"""

from __future__ import annotations

import numpy as np

from tests.errors.catalogue.made import (
    Command,
    nothing,
    saved,
    written,
)

BUILD = "build a.plan --num-samples 9 --batch-size 2"

COMMANDS: list[Command] = [
    # words
    (
        "--quiet",
        2,
        "indexplan: an option must be one that `indexplan` has; got '--quiet'; see `indexplan "
        "--help`",
        nothing,
    ),
    (
        "frobnicate",
        2,
        "indexplan: the verb must be one of build, orders, finish, show, plot, draws, shards, "
        "traffic, locate, explain, diff, verify, export, bench, warm-up, completion; got "
        "'frobnicate'; did you mean locate? see `indexplan --help`",
        nothing,
    ),
    (
        "show a.plan --colour red",
        2,
        "indexplan: an option must be one that `indexplan show` has; got '--colour'; did you "
        "mean --column? see `indexplan show --help`",
        nothing,
    ),
    (
        "completion bsh",
        2,
        "indexplan: SHELL must be one of bash, zsh, fish, tcsh; got 'bsh'; did you mean bash? see "
        "`indexplan completion --help`",
        nothing,
    ),
    # build
    ("build", 2, "indexplan: `indexplan build` needs PLAN; see `indexplan build --help`", nothing),
    (
        "build a.plan --batch-size 2",
        2,
        "indexplan: exactly one of --num-samples, --dataset and --shards must be given; got "
        "none; give --dataset or --shards to have samples counted, or else --num-samples",
        nothing,
    ),
    (
        f"{BUILD} --dataset data",
        2,
        "indexplan: exactly one of --num-samples, --dataset and --shards must be given; got "
        "two; give --dataset or --shards to have samples counted, or else --num-samples",
        lambda: written("data/a.txt"),
    ),
    (
        "build a.plan --batch-size 2 --dataset data --shards data",
        2,
        "indexplan: one of --dataset and --shards must be left out; got both; leave out --dataset",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --dataset data --shards sizes.npy",
        2,
        "indexplan: one of --dataset and --shards must be left out; got both; leave out --dataset",
        lambda: np.save("sizes.npy", [3, 1]),
    ),
    (
        "show a.plan --shards sizes.npy",
        2,
        "indexplan: --shards must be shards, or the .json file that `indexplan shards --output` "
        "writes; got 'sizes.npy, which holds sizes alone'; name the shards that the plan was built "
        "for",
        lambda: (np.save("sizes.npy", [3, 1]), saved()),
    ),
    # shards
    (
        "shards data --output sizes.txt",
        2,
        "indexplan: --output must be a file that ends in .json; got 'sizes.txt'; name it "
        "shards.json",
        nothing,
    ),
    (
        "shards a.npy --output nowhere/sizes.json",
        2,
        "indexplan: --output must be a file that can be written; got 'nowhere/sizes.json (No "
        "such file or directory)'; choose another path",
        lambda: np.save("a.npy", [1, 2]),
    ),
    (
        "build a.plan --batch-size 2 --order 'Epochs(3)'",
        2,
        'indexplan: Epochs(3) must be as `indexplan orders` describes it; got "TypeError: '
        "Epochs.__init__() missing 1 required positional argument: 'epoch_size'\"; write it so",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(3) + 1'",
        2,
        "indexplan: an order must be written as in Python, of orders, numbers, text, lists and "
        "dicts; got 'Shuffle(3) + 1'; write it as \"Epochs(Shuffle(1000000), 50000)\", or build "
        "the plan in Python",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(3'",
        2,
        "indexplan: an order must be written as in Python, of orders, numbers, text, lists and "
        "dicts; got 'Shuffle(3'; write it as \"Epochs(Shuffle(1000000), 50000)\", or build the "
        "plan in Python",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(*[3])'",
        2,
        "indexplan: an order must be written as in Python, of orders, numbers, text, lists and "
        "dicts; got 'Shuffle(*[3])'; write it as \"Epochs(Shuffle(1000000), 50000)\", or build the "
        "plan in Python",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(9, seed=1, seed=2)'",
        2,
        "indexplan: each key and argument of an order must be given once; got 'seed'; leave one "
        "out",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(Shuffle)'",
        2,
        "indexplan: an order must be written as in Python, of orders, numbers, text, lists and "
        "dicts; got 'Shuffle'; write it as \"Epochs(Shuffle(1000000), 50000)\", or build the "
        "plan in Python",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shufle(3)'",
        2,
        "indexplan: a name in an order must be one of {names}; got 'Shufle'; did you mean "
        "Shuffle? import the module that registers others",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(3, sed=1)'",
        2,
        "indexplan: an argument of Shuffle must be one of num_samples, seed; got 'sed'; did you "
        "mean seed? `indexplan orders` describes it",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'range(3)'",
        2,
        "indexplan: an order must be text that makes an Order; got range(0, 3); write it as "
        '"Epochs(Shuffle(1000000), 50000)", or build the plan in Python',
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(10)' --num-samples 9",
        2,
        "indexplan: the number of samples in --order must be 9, as the other options say; got "
        "10; change one of the two",
        nothing,
    ),
    (
        "build a.plan --batch-size 2 --order 'Shuffle(10)' --seed 1",
        2,
        "indexplan: fields beside an order written as in Python must be left out; got 'seed=1'; "
        "write them inside it, such as Shuffle(100, seed=1)",
        nothing,
    ),
    (
        "build a.plan --num-samples 9",
        2,
        "indexplan: one of --batch-size and --global-batch-size must be given; got neither; "
        "give --batch-size, for each rank, or --global-batch-size, for all ranks together",
        nothing,
    ),
    (
        "build a.plan --num-samples many --batch-size 2",
        2,
        "indexplan: --num-samples must be an integer, such as 1000000 or 1e6; got 'many'; see "
        "`indexplan build --help`",
        nothing,
    ),
    (
        "build a.plan --num-samples 0 --batch-size 2",
        2,
        "indexplan: --num-samples must be an integer from 1 to 2**63 - 1; got 0; pass how many "
        "samples there are",
        nothing,
    ),
    (
        "build a.plan --num-samples 9 --batch-size x",
        2,
        "indexplan: a batch size must be a size such as 256 or 5x3; got 'x'; write digits",
        nothing,
    ),
    (
        "build a.plan --dataset data --batch-size 2",
        2,
        "indexplan: --dataset must be a folder or a .npy file; got 'data'; check the path",
        nothing,
    ),
    (
        "build a.plan --dataset data --pattern *.jpg --batch-size 2",
        2,
        "indexplan: --pattern must be one that matches files of data; got '*.jpg'; check both, or "
        "leave it out for all files",
        lambda: written("data/a.txt"),
    ),
    (
        f"{BUILD} --pattern *.jpg",
        2,
        "indexplan: --pattern needs --dataset; add --dataset with a folder",
        nothing,
    ),
    (
        f"{BUILD} --global-batch-size 2",
        2,
        "indexplan: exactly one of --batch-size and --global-batch-size must be given; got both; "
        "pass --batch-size for the units of one rank, or --global-batch-size for those of all",
        nothing,
    ),
    (
        f"{BUILD} --order shufle",
        2,
        "indexplan: the kind of an order must be one of {kinds}; got 'shufle'; did you mean "
        "shuffle? `indexplan orders` lists them",
        nothing,
    ),
    (
        f"{BUILD} --order ''",
        2,
        "indexplan: an order must be text of a kind and its fields, with each quote closed; got "
        "''; write it as \"block-shuffle block_size=4096\"",
        nothing,
    ),
    (
        f"""{BUILD} --order "shuffle 'seed=1" """,
        2,
        "indexplan: an order must be text of a kind and its fields, with each quote closed; got "
        '"shuffle \'seed=1"; write it as "block-shuffle block_size=4096"',
        nothing,
    ),
    (
        f"{BUILD} --order 'shuffle 7'",
        2,
        "indexplan: a word after shuffle must be name=value; got '7'; write it so, or leave it out",
        nothing,
    ),
    (
        f"{BUILD} --order block-shuffle",
        2,
        "indexplan: block_size must be given with block-shuffle; got none; add block_size=..., as "
        "`indexplan orders` describes it",
        nothing,
    ),
    (
        f"{BUILD} --window 2",
        2,
        "indexplan: a field of shuffle must be one of seed; got 'window'; `indexplan orders` "
        "lists them",
        nothing,
    ),
    (
        f"{BUILD} --order sequential --block-size 2",
        2,
        "indexplan: a field of sequential must be left out, as it has none; got 'block_size'; "
        "`indexplan orders` lists them",
        nothing,
    ),
    (
        f"{BUILD} --order 'shuffle seed=1' --seed 2",
        2,
        "indexplan: --seed must be given once; got '1 and 2'; leave one of them out",
        nothing,
    ),
    (
        f"{BUILD} --order test-odd",
        2,
        "indexplan: --num-samples must be 10, as the fields of test-odd tell; got 9; leave it "
        "out, or change the fields",
        nothing,
    ),
    (
        f"{BUILD} --order 'test-odd rows=1'",
        2,
        "indexplan: rows of test-odd must be of a type that text can hold: int, float, str, bool, "
        "Column; got 'list[int] | None'; build the plan in Python",
        nothing,
    ),
    (
        f"{BUILD} --order test-listed-column --column rows.npy",
        2,
        "indexplan: a word after test-listed-column must be name=value; got 'rows.npy'; write it "
        "so, or leave it out",
        nothing,
    ),
    (
        f"{BUILD} --order test-listed-column --column samples=rows.npy",
        2,
        "indexplan: a column's path must be that of a .npy file of numbers in one dimension; got "
        "\"{here}/rows.npy ([Errno 2] No such file or directory: '{here}/rows.npy')\"; write it "
        "with np.save",
        nothing,
    ),
    (
        f"{BUILD} --import not_there",
        2,
        "indexplan: --import must name a module that Python can import; got 'not_there' "
        "(ModuleNotFoundError: No module named 'not_there'); set PYTHONPATH to the folder that "
        "it is in",
        nothing,
    ),
    (
        f"{BUILD} --seed x",
        2,
        "indexplan: --seed must be an integer, such as 4096 or 1e6; got 'x'; write it so",
        nothing,
    ),
    (
        f"{BUILD} --seed -1",
        2,
        "indexplan: --seed must be an integer from 0 to 2**128 - 1; got -1; hash other seeds to "
        "such an integer first",
        nothing,
    ),
    (
        f"{BUILD} --world-size 1.5",
        2,
        "indexplan: --world-size must be an integer, such as 1000000 or 1e6; got '1.5'; see "
        "`indexplan build --help`",
        nothing,
    ),
    (
        f"{BUILD} --world-size 0",
        2,
        "indexplan: --world-size must be an integer from 1 to 2**31 - 1; got 0; leave it out to "
        "keep it open",
        nothing,
    ),
    (
        f"{BUILD} --sub-epochs 0",
        2,
        "indexplan: --sub-epochs must be an integer from 1 to 2**63 - 1; got 0; leave it out for "
        "one sub-epoch an epoch",
        nothing,
    ),
    (
        f"{BUILD} --remainder wrap",
        2,
        "indexplan: --remainder must be one of carry, drop, pad, spread; got 'wrap'; see "
        "`indexplan build --help`",
        nothing,
    ),
    (
        "build a.plan --num-samples 1e12 --batch-size 2",
        2,
        "indexplan: --force must be given to write more than 100 GB; got '8.0 TB for a.plan'; "
        "add --force, or write fewer epochs",
        nothing,
    ),
    (
        f"{BUILD} --epochs 0",
        2,
        "indexplan: --epochs must be from 1 to 2**32; got 0; leave it out for one",
        nothing,
    ),
    (
        f"{BUILD} --epochs",
        2,
        "indexplan: --epochs needs a value; see `indexplan build --help`",
        nothing,
    ),
    (
        f"{BUILD} --part 2",
        2,
        "indexplan: --part must be a part and how many there are, such as 1/4; got '2'; write "
        "it as I/N, or leave it out to build all of it",
        nothing,
    ),
    (
        f"{BUILD} --part 5/4",
        2,
        "indexplan: --part must be from 1/4 to 4/4; got '5/4'; count from 1, in a job array with "
        "--array=1-4",
        nothing,
    ),
    (
        f"{BUILD} --dask scheduler",
        2,
        "indexplan: --dask must be the address of a running Dask scheduler, or local; got "
        "'scheduler' (missing port number in address 'scheduler'); start a scheduler there with "
        "`dask scheduler`, or check the address",
        nothing,
    ),
    (
        "build no/a.plan --num-samples 9 --batch-size 2",
        1,
        "indexplan: no/a.plan must be a folder that can be made; got 'No such file or "
        "directory'; check the path",
        nothing,
    ),
    (
        "build zz://a.plan --num-samples 9 --batch-size 2",
        2,
        "indexplan: path must be a folder, or a URL of a kind that fsspec knows; got "
        "'zz://...'; check the letters before ://",
        nothing,
    ),
    (
        BUILD,
        1,
        "indexplan: a.plan must be a build of the same order and epochs; got one with order "
        "{'algorithm': 'sequential-v1', 'num_samples': 1000}, not {'algorithm': 'shuffle-v1', "
        "'num_samples': 9, 'seed': 0}; num_samples 1000, not 9; num_units [1000], not [9]; "
        "units_per_chunk 256, not 67108864; choose another path",
        saved,
    ),
]
