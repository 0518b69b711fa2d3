"""Errors of the commands that read and write files, as in `commands`; what cannot be typed."""

from __future__ import annotations

from types import SimpleNamespace

from indexplan.cli import completion
from indexplan.cli.common import open_either
from indexplan.cli.engines import engine
from tests.errors.catalogue.made import (
    OPEN,
    Case,
    Command,
    edited,
    locked,
    nothing,
    parts,
    saved,
    spec_file,
    without,
    written,
)


def on_dask() -> None:
    """Connect to workers, as `build --dask local` does."""
    with engine(SimpleNamespace(dask="local")):
        pass


BASH = SimpleNamespace(shell="bash", json=False)  # noqa: S604 (no process is run)
BENCH = "bench --num-samples 9 --batch-size 2"

COMMANDS: list[Command] = [
    # finish
    (
        "finish",
        2,
        "indexplan: `indexplan finish` needs PLAN; see `indexplan finish --help`",
        nothing,
    ),
    (
        "finish a.plan",
        1,
        "indexplan: a.plan must be a plan directory; got nothing there; check the path, or "
        "build it with `indexplan build`",
        nothing,
    ),
    (
        "finish a.plan",
        1,
        "indexplan: a.plan must have all of its chunks; got no record of chunks 1 and 3 of epoch "
        "0; run parts 2/4 and 4/4 again",
        lambda: parts(1, 3),
    ),
    (
        "finish a.plan",
        1,
        "indexplan: a.plan: epochs must be a list of integers; got 5; restore the file, or "
        "build the plan again at another path",
        lambda: edited("build.json", epochs=5),
    ),
    # verify
    (
        "verify",
        2,
        "indexplan: `indexplan verify` needs PLAN; see `indexplan verify --help`",
        nothing,
    ),
    (
        "verify a.plan --world-size 0",
        2,
        "indexplan: --world-size must be an integer from 1 to 2**31 - 1; got 0; leave it out to "
        "keep it open",
        saved,
    ),
    (
        "verify a.plan",
        1,
        "indexplan: {here}/a.plan must be a plan directory; got nothing there; check the path, "
        "or build it with `indexplan build`",
        nothing,
    ),
    # export
    (
        "export plan.json",
        2,
        "indexplan: `indexplan export` needs OUT; see `indexplan export --help`",
        spec_file,
    ),
    (
        "export plan.json out --per-rank --epoch -1",
        2,
        "indexplan: --epoch must be an integer from 0 to 2**32 - 1; got -1; count from 0; a run "
        "ends with epoch 2**32 - 1",
        spec_file,
    ),
    (
        "export plan.json out --per-rank --format parquet",
        2,
        "indexplan: --per-rank needs --format npy; got parquet; leave one of the two out",
        spec_file,
    ),
    (
        "export plan.json out",
        2,
        "indexplan: --world-size must be set for an export, which has files for each rank; got "
        "none; use --world-size",
        lambda: spec_file(OPEN),
    ),
    (
        "export plan.json out",
        1,
        "indexplan: out must be new, empty or an export of the same plan; got a file; choose "
        "another path",
        lambda: (spec_file(), written("out")),
    ),
    # bench
    (
        "bench --batch-size 2",
        2,
        "indexplan: --num-samples must be given; got none; pass how many samples there are",
        nothing,
    ),
    (
        f"{BENCH} --plot a.gif",
        2,
        "indexplan: the end of --plot must be .png or .svg or .pdf; got 'a.gif'; end it with "
        "one of these",
        nothing,
    ),
    (
        f"{BENCH} --plot a.png",
        2,
        "indexplan: --plot must be a new file; got 'a.png'; choose another path, or delete the "
        "file",
        lambda: written("a.png"),
    ),
    (
        f"{BENCH} --remainder drop --world-size 9",
        2,
        "indexplan: the number of steps to measure must be at least 1; got 0; bench more "
        "samples, fewer ranks or a smaller batch",
        nothing,
    ),
    # warm-up
    (
        "warm-up now",
        2,
        "indexplan: `indexplan warm-up` must have no more arguments; got 'now'; see `indexplan "
        "warm-up --help`",
        nothing,
    ),
    (
        "warm-up --json=1",
        2,
        "indexplan: --json must have no value; got '1'; see `indexplan warm-up --help`",
        nothing,
    ),
    (
        "build a.plan --s=1",
        2,
        "indexplan: an option must be the beginning of one option, not of --shards and --seed "
        "and --sub-epochs; got '--s'; write it in full",
        nothing,
    ),
]

CASES: list[Case] = [
    (
        "no shtab",
        lambda: without("shtab", lambda: completion.run(BASH)),
        "completion needs shtab; pip install 'indexplan[cli]'",
    ),
    (
        "no Dask",
        lambda: without("dask", on_dask),
        "--dask needs dask.distributed; pip install 'indexplan[dask]'",
    ),
    (
        "a spec that is locked",
        lambda: (spec_file(), locked({"plan.json": 0}, lambda: open_either("plan.json"))),
        "plan.json must be readable; got 'Permission denied'; check its permissions",
    ),
]
