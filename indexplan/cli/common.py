"""What verbs share: options, reading numbers, opening a plan, and showing results and progress."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import indexplan as ip
from indexplan.answers import Answer, printable_lines
from indexplan.cli.parsing import Parser
from indexplan.errors import (
    IndexPlanError,
    PlanFileError,
    cure_of,
    in_file,
    install,
    integer,
    invalid,
)
from indexplan.seeds import EPOCH_STOP

OF_PLANS = ("columns", "world_size")  # options that have no meaning with a ledger
OF_DATA = ("dataset", "pattern", "shards")
BEGIN = b'{"check":"'  # of a ledger


def add_verb(
    verbs: Any,
    name: str,
    run: Callable[[Any], Answer],
    words: str,
    *,
    examples: Sequence[str],
    more: str = "",
) -> Parser:
    """Add a verb to the parser, with the options that all have; `run` returns its answer.

    `words` say in a line what it does, `more` in its own help, and `examples` are commands that
    work.
    """
    command: Parser = verbs.add_parser(
        name, help=words, description=more or words[0].upper() + words[1:] + "."
    )
    command.epilog = "\n  ".join(["examples:", *examples])
    command.set_defaults(run=run, columns=[], exit_code=False)
    command.set_defaults(**dict.fromkeys(("world_size", *OF_DATA)))
    command.add_argument("--json", action="store_true", help="print JSON, for programs")
    words = "import this module first, for orders that you have registered"
    command.add_argument(
        "--import", dest="modules", action="append", default=[], metavar="MODULE", help=words
    )
    return command


def add_numbers(command: argparse.ArgumentParser, **words: str) -> None:
    """Add options that take an integer, by their names, with what their help says."""
    for name, said in words.items():
        option = f"--{name.replace('_', '-')}"
        command.add_argument(option, type=number, metavar="N", help=said)


def add_plan(command: argparse.ArgumentParser, dataset: str = "", names: str = "plan") -> None:
    """Add arguments that name plan directories or files with plans, and options of plans.

    `dataset` says what a dataset is named for; "" if it is not.
    """
    words = "a plan directory or its URL, or a .json file with the result of plan.to_json()"
    for name in names.split():
        command.add_argument(name, metavar=name.upper(), help=words)
    add_columns(command)
    if names != "a b":  # which have a number each
        add_numbers(command, world_size="how many ranks, in place of the plan's number")
    if dataset:
        add_dataset(command, dataset)


def add_columns(command: argparse.ArgumentParser) -> None:
    """Add the option that names the columns of the order of a plan in a .json file."""
    words = (
        "for a plan in a .json file: a .npy file with a column of its order, or a folder of such "
        "files, which are recognised by their content; you can give it several times"
    )
    add = command.add_argument
    add("--column", dest="columns", action="append", default=[], metavar="PATH", help=words)


def add_dataset(command: argparse.ArgumentParser, words: str, sizes: bool = False) -> None:
    """Add the options that name a dataset; `words` say what for, `sizes` if its sizes will do."""
    command.add_argument("--dataset", metavar="PATH", help=f"a folder or a .npy file: {words}")
    command.add_argument("--pattern", metavar="GLOB", help="which files of the folder (**/*)")
    more = "; or a .npy file with the number of samples in each" if sizes else ""
    words = (
        "the same for a dataset in shards: a glob, folder, index or URL, as `indexplan shards` "
        f"takes it, or a .json file with what `indexplan shards --json` prints{more}"
    )
    command.add_argument("--shards", metavar="PATH", help=words)


def option_of(name: str) -> str:
    """Return how an attribute of the options is typed."""
    return "--column" if name == "columns" else f"--{name.replace('_', '-')}"


def check_left_out(
    options: Any, names: Sequence[str], rule: str, got: object = None, cure: str = ""
) -> None:
    """Raise `IndexPlanError` with the rule if one of some options was given."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False and value != []:  # 0 is a value
            option = option_of(name)
            raise IndexPlanError(option, rule, got, f"{cure}leave {option} out")


def number(text: str) -> int:
    """Read an integer, also as 1e9 or 1_000_000."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("nan")
    if value.is_finite() and value == value.to_integral_value() and abs(value.adjusted()) < 50:
        return int(value)
    rule = f"must be an integer, such as 1000000 or 1e6; got {text!r}"
    raise argparse.ArgumentTypeError(rule)  # the parser says which option it is of


def epochs_of(options: Any) -> range | None:
    """Return the epochs that a verb looks at; None leaves the choice to the function it calls."""
    if options.epochs is None:
        return None
    return range(integer("--epochs", options.epochs, 1, EPOCH_STOP + 1, "leave it out"))


def emit(options: Any, answer: Answer) -> None:
    """Print an answer, for programs or for people, with terminals' control characters escaped."""
    text = json.dumps(answer.to_dict(), indent=2) if options.json else str(answer)
    text = printable_lines(text)
    known = sys.stdout.encoding or "utf-8"  # which may have no more than ASCII
    print(text.encode(known, "backslashreplace").decode(known))  # noqa: T201 (the output)


def shards_at(path: str | None) -> ip.Shards | ip.Column | None:
    """Return what a path names: shards, or in a .npy file the samples in each and no more."""
    if path is None:
        return None
    if path.endswith(".npy") and Path(path).is_file():
        return ip.Column(path, "integers")
    with progress_bar("reading shards", "file") as progress:
        return ip.shard_sizes(path, progress=progress)


def data_named(
    options: Any, built_for: ip.Dataset | None = None
) -> ip.Dataset | ip.Shards | ip.Column | None:
    """Look at the data that the command names, with the plan's pattern unless it gives one."""
    if options.shards is not None and options.dataset is not None:
        raise IndexPlanError(
            "one of --dataset and --shards", "must be left out", "both", "leave out --dataset"
        )
    if options.dataset is not None:
        pattern = options.pattern or (built_for and built_for.pattern) or "**/*"
        return ip.Dataset.scan(options.dataset, pattern)
    if options.pattern is not None:
        raise IndexPlanError("--pattern", "needs --dataset", None, "add --dataset with a folder")
    return shards_at(options.shards)


def scan_dataset(
    options: Any, built_for: ip.Dataset | None = None
) -> ip.Dataset | ip.Shards | None:
    """Return the dataset that the command names, to compare it with the one of a plan."""
    data = data_named(options, built_for)
    if isinstance(data, ip.Column):
        rule = "shards, or a .json file with what `indexplan shards --json` prints"
        cure = "name the shards that the plan was built for"
        raise invalid("--shards", rule, f"{options.shards}, which holds sizes alone", cure)
    return data


def is_ledger(path: str) -> bool:
    """Return whether a path holds the ledger of a run, as far as its first bytes tell."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(BEGIN)) == BEGIN
    except (OSError, ValueError):
        return False


def open_ledger(path: str) -> ip.Ledger:
    """Open the ledger of a run that has begun."""
    if is_ledger(path) and (ledger := ip.Ledger(path)).tail.num_lines:
        return ledger
    rule = "must be a ledger that a run has written"
    got = "something else" if os.path.lexists(path) else "nothing there"
    raise PlanFileError(path, rule, got, "check the path")


def ledger_named(options: Any, *of_plans: str) -> ip.Ledger | None:
    """Return the ledger that the command names in a plan's place; None if that is a plan.

    Raise `IndexPlanError` if it is given options that need a plan: `of_plans`, or those of all.
    """
    if not is_ledger(options.plan):
        return None
    check_left_out(options, (*of_plans, *OF_DATA, *OF_PLANS), "needs a plan", options.plan)
    return open_ledger(options.plan)


def open_either(path: str, columns: Sequence[str] = ()) -> tuple[ip.Plan, ip.types.Stored | None]:
    """Open a plan directory, or read a plan from a .json file, which isn't stored.

    `columns` are the files, and folders of files, with the columns of a plan in a .json file.
    """
    if path.endswith(".json") and Path(path).is_file():
        # opened once, so that a file is hashed once, however many fields look at it
        given = [each if Path(each).is_dir() else ip.Column(each) for each in columns]
        try:
            return ip.Plan.from_json(Path(path).read_bytes(), columns=given), None
        except OSError as error:
            got, cure = f"{error.strerror!r}", cure_of(error, "check its permissions")
            raise PlanFileError(path, "must be readable", got, cure) from error
        except IndexPlanError as error:
            raise in_file(path, error) from error
    if is_ledger(path):
        cure = f"ask it with `indexplan show {path}`"
        raise PlanFileError(path, "must be a plan", "the ledger of a run", cure)
    plan = ip.load(path)
    return plan, plan.order if isinstance(plan.order, ip.types.Stored) else None


class Opened(NamedTuple):
    """A plan that a command names."""

    plan: ip.Plan
    first: int  # the epoch that it is about unless it names one: stored, and not read yet
    stored: ip.types.Stored | None
    dataset: ip.Dataset | ip.Shards | None


def open_plan(options: Any) -> Opened:
    """Open the plan that the command names, and compare it with a dataset if it names one too."""
    plan, stored = open_either(options.plan, options.columns)
    if options.columns and stored is not None:
        rule = "needs a plan in a .json file, as a plan directory has its columns"
        raise IndexPlanError("--column", rule, options.plan, "leave --column out")
    dataset = scan_dataset(options, None if stored is None else stored.build.dataset)
    if dataset is not None and stored is None:
        rule = "needs a plan directory, which remembers its dataset"
        raise IndexPlanError("--dataset", rule, options.plan, "leave --dataset out")
    if dataset is not None:
        plan = ip.load(options.plan, dataset=dataset)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    first = max(0 if stored is None else stored.build.epochs[0], plan.start.epoch)
    return Opened(plan, first, stored, dataset)


@contextlib.contextmanager
def progress_bar(words: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Return what shows how much is done, on stderr if that is a terminal and tqdm is there."""
    bars: list[Any] = []

    def tell(done: int, total: int) -> None:
        if done == 0 and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                sys.stderr.write(f"to see progress: {install('cli')}\n")
            else:
                how = {"unit_scale": True, "mininterval": 0.2, "file": sys.stderr}
                bars.append(tqdm(total=total, desc=words, unit=unit, **how))
        if bars:
            bars[-1].update(done - bars[-1].n)

    try:
        yield tell
    finally:
        for bar in bars:
            bar.close()
