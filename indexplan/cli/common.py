"""What verbs share: reading numbers, opening a plan, and showing results and progress."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import indexplan as ip
from indexplan.answers import Answer, printable_lines
from indexplan.cli.mistaken import is_ledger
from indexplan.cli.parsing import Parser
from indexplan.errors import (
    IndexPlanError,
    PlanFileError,
    cure_of,
    in_file,
    install,
    integer,
    wrong,
)
from indexplan.seeds import EPOCH_STOP

if TYPE_CHECKING:
    from typing import Self

OK, WRONG_PLAN, WRONG_COMMAND = 0, 1, 2


def add_verb(
    verbs: Any, name: str, run: Callable[[Any], int], words: str, *, examples: Sequence[str]
) -> Parser:
    """Add a verb to the parser, with the options that all have; `run` returns the exit code.

    `words` say in a line what it does, and `examples` are commands that work.
    """
    command: Parser = verbs.add_parser(
        name, help=words, description=words[0].upper() + words[1:] + "."
    )
    command.epilog = "\n  ".join(["examples:", *examples])
    command.set_defaults(run=run)
    command.add_argument("--json", action="store_true", help="print JSON, for programs")
    words = "import this module first, for orders that you have registered"
    command.add_argument(
        "--import", dest="modules", action="append", default=[], metavar="MODULE", help=words
    )
    return command


def add_plan(command: argparse.ArgumentParser) -> None:
    """Add the argument that names a plan directory."""
    command.add_argument("plan", metavar="PLAN", help="the plan directory or its URL")


def add_plan_or_spec(
    command: argparse.ArgumentParser, name: str = "plan", metavar: str = "PLAN"
) -> None:
    """Add the argument that names a plan directory, or a file with the plan alone."""
    words = "a plan directory or its URL, or a .json file with the result of plan.to_json()"
    command.add_argument(name, metavar=metavar, help=words)


def add_columns(command: argparse.ArgumentParser) -> None:
    """Add the option that names the columns of the order of a plan in a .json file."""
    words = (
        "for a plan in a .json file: a .npy file with a column of its order, or a folder of such "
        "files, which are recognised by their content; you can give it several times"
    )
    add = command.add_argument
    add("--column", dest="columns", action="append", default=[], metavar="PATH", help=words)


def check_left_out(options: Any, names: Sequence[str], rule: str, got: object = None) -> None:
    """Raise `IndexPlanError` with the rule if one of some options was given."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value is not False and value != []:  # 0 is a value
            option = "--column" if name == "columns" else f"--{name.replace('_', '-')}"
            raise IndexPlanError(option, rule, got, f"leave {option} out")


def add_epochs(command: argparse.ArgumentParser, default: str) -> None:
    """Add the option that chooses the number of epochs; `default` says which there are without."""
    words = f"how many epochs to look at, starting with epoch 0 ({default})"
    command.add_argument("--epochs", type=number, metavar="N", help=words)


def epochs_of(options: Any) -> range | None:
    """Return the epochs that a verb looks at; None leaves the choice to the function it calls."""
    if options.epochs is None:
        return None
    return range(integer("--epochs", options.epochs, 1, EPOCH_STOP + 1, "leave it out"))


def add_world_size(command: argparse.ArgumentParser) -> None:
    """Add the option that replaces the plan's number of ranks."""
    words = "how many ranks, in place of the plan's number"
    command.add_argument("--world-size", type=number, metavar="N", help=words)


def add_dataset(command: argparse.ArgumentParser, words: str, sizes: bool = False) -> None:
    """Add the options that name a dataset; `words` say what for, `sizes` if its sizes will do."""
    command.add_argument("--dataset", metavar="PATH", help=f"a folder or a .npy file: {words}")
    command.add_argument("--pattern", metavar="GLOB", help="which files of the folder (**/*)")
    add_shards(command, "the same for a dataset in shards", sizes)


def add_shards(command: argparse.ArgumentParser, words: str, sizes: bool) -> None:
    """Add the option that names shards, or a .npy file of their sizes if these will do."""
    more = "; or a .npy file with the number of samples in each" if sizes else ""
    words = (
        f"{words}: a glob, folder, index or URL, as `indexplan shards` takes it, or the .json file "
        f"that `indexplan shards --output` writes{more}"
    )
    command.add_argument("--shards", metavar="PATH", help=words)


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


def add_most_epochs(command: Any, when: str = "") -> None:
    """Add the option that names sources which are read often."""
    words = f"{when}name the sources of which more epochs are read than this"
    command.add_argument("--most-epochs", type=float, metavar="N", help=words)


def shards_at(path: str | None) -> ip.Shards | ip.Column | None:
    """Return what a path names: shards, or in a .npy file the samples in each and no more."""
    if path is None:
        return None
    if path.endswith(".npy") and Path(path).is_file():
        return ip.Column(path, "integers")
    with Progress("reading shards", "file") as progress:
        return ip.shard_sizes(path, progress=progress)


def emit(options: Any, answer: Answer) -> None:
    """Print an answer, for programs or for people, with terminals' control characters escaped."""
    text = json.dumps(answer.to_dict(), indent=2) if options.json else str(answer)
    text = printable_lines(text)
    known = sys.stdout.encoding or "utf-8"  # which may have no more than ASCII
    print(text.encode(known, "backslashreplace").decode(known))  # noqa: T201 (the output)


def checked_output(path: str | None) -> str | None:
    """Return the .json file that --output names, before anything is computed for it."""
    if path is not None and not path.endswith(".json"):
        raise wrong("--output", "a file that ends in .json", path, "end it with .json")
    return path


def write_output(path: str | None, text: str) -> None:
    """Write a text to the file that --output names, if it names one."""
    if path is None:
        return
    try:
        Path(path).write_text(text)
    except OSError as error:
        got, cure = f"{path} ({error.strerror})", cure_of(error, "choose another path")
        raise wrong("--output", "a file that can be written", got, cure) from error


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
        rule = "shards, or the .json file that `indexplan shards --output` writes"
        cure = "name the shards that the plan was built for"
        raise wrong("--shards", rule, f"{options.shards}, which holds sizes alone", cure)
    return data


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
            raise PlanFileError(
                path,
                "must be readable",
                f"{error.strerror!r}",
                cure_of(error, "check its permissions"),
            ) from error
        except IndexPlanError as error:
            raise in_file(path, error) from error
    if is_ledger(path):
        cure = f"ask it with `indexplan ledger {path}`"
        raise PlanFileError(path, "must be a plan", "the ledger of a run", cure)
    plan = ip.load(path)
    return plan, plan.order if isinstance(plan.order, ip.types.Stored) else None


def first_epoch(plan: ip.Plan, stored: ip.types.Stored | None) -> int:
    """Return the epoch that a command is about unless it names one: the first that is left."""
    return max(0 if stored is None else stored.build.epochs[0], plan.start.epoch)


def open_plan(
    options: Any,
) -> tuple[ip.Plan, ip.types.Stored | None, ip.Dataset | ip.Shards | None]:
    """Open what the command names, and compare it with the dataset if it names one too."""
    columns = getattr(options, "columns", ())
    plan, stored = open_either(options.plan, columns)
    if columns and stored is not None:
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
    return plan, stored, dataset


class Progress:
    """A bar with rate and remaining time on stderr, if that is a terminal and tqdm is there."""

    def __init__(self, words: str, unit: str) -> None:
        self.words, self.unit = words, unit
        self.bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done; the first call, with 0, starts the bar, and the last ends it."""
        if done == 0 and sys.stderr.isatty():
            self.bar = self._start(total)
        if self.bar is not None:
            self.bar.update(done - self.bar.n)
            if done == total:
                self._end()

    def _start(self, total: int) -> Any:
        try:
            from tqdm import tqdm
        except ImportError:
            sys.stderr.write(f"to see progress: {install('cli')}\n")
            return None
        how = {"unit": self.unit, "unit_scale": True, "mininterval": 0.2, "file": sys.stderr}
        return tqdm(total=total, desc=self.words, **how)

    def _end(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None

    def __exit__(self, *exception: object) -> None:
        self._end()
