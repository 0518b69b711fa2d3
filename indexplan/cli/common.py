"""What verbs share: how numbers are read, a plan is opened, results and progress are shown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import indexplan as ip
from indexplan.answers import Answer, printable_lines
from indexplan.cli.terminal import for_terminal
from indexplan.errors import IndexPlanError, PlanFileError, cure_of, integer
from indexplan.files.format import Manifest
from indexplan.orders.kinds import integer_in
from indexplan.seeds import EPOCH_STOP

if TYPE_CHECKING:
    from typing_extensions import Self

OK, WRONG_PLAN, WRONG_COMMAND = 0, 1, 2


def add_verb(
    verbs: Any, name: str, run: Callable[[Any], int], words: str
) -> argparse.ArgumentParser:
    """Add a verb, which every verb's `add` begins with; `run` returns the exit code."""
    command: argparse.ArgumentParser = verbs.add_parser(
        name, help=words, description=words[0].upper() + words[1:] + "."
    )
    command.set_defaults(run=run)
    command.add_argument("--json", action="store_true", help="print JSON, for programs")
    words = "import a module first, which registers orders of your own"
    command.add_argument(
        "--import", dest="modules", action="append", default=[], metavar="MODULE", help=words
    )
    return command


def add_plan(command: argparse.ArgumentParser) -> None:
    """Let a verb name a plan directory."""
    command.add_argument("plan", metavar="PLAN", help="the plan directory, or its URL")


def add_plan_or_spec(
    command: argparse.ArgumentParser, name: str = "plan", metavar: str = "PLAN"
) -> None:
    """Let a verb name a plan directory, or a file with the plan alone."""
    words = "a plan directory, or a .json file that holds what plan.to_json() returns"
    command.add_argument(name, metavar=metavar, help=words)


def add_columns(command: argparse.ArgumentParser) -> None:
    """Let a verb that reads a plan from a .json file name the columns of its order."""
    words = (
        "a .npy file with a column of the order of a plan in a .json file, or a folder that has "
        "such a file; columns are known by their numbers, so NAME= is only for the reader; may "
        "be repeated"
    )
    command.add_argument(
        "--column",
        dest="columns",
        type=column_or_folder,
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help=words,
    )


def column_or_folder(text: str) -> str:
    """Read the path of a column or a folder of columns, with or without a field's name before."""
    name, _, path = text.partition("=")
    return path if name.isidentifier() else text


def add_epochs(command: argparse.ArgumentParser) -> None:
    """Let a verb look at more or fewer epochs."""
    words = "how many epochs to look at, from 0 on; left out, those where it matters"
    command.add_argument("--epochs", type=number, metavar="N", help=words)


def epochs_of(options: Any) -> range | None:
    """Return the epochs that a verb looks at; None leaves the choice to what it calls."""
    if options.epochs is None:
        return None
    return range(integer("--epochs", options.epochs, 1, EPOCH_STOP + 1, "leave it out"))


def add_world_size(command: argparse.ArgumentParser) -> None:
    """Let a verb look at a stored plan as other numbers of ranks would."""
    words = "ranks, instead of the plan's"
    command.add_argument("--world-size", type=number, metavar="N", help=words)


def add_dataset(command: argparse.ArgumentParser, words: str) -> None:
    """Let a verb name a dataset; `words` say what for."""
    command.add_argument("--dataset", metavar="PATH", help=f"a folder or a .npy file: {words}")
    command.add_argument("--pattern", metavar="GLOB", help="which files of the folder (**/*)")
    words = (
        "the same of a dataset in shards: a glob, folder, index or URL, as `indexplan shards` "
        "takes it, or the .json file that this has written"
    )
    command.add_argument("--shards", metavar="PATH", help=words)


def number(text: str) -> int:
    """Read an integer, also as 1e9 or 1_000_000."""
    if (value := integer_in(text)) is not None:
        return value
    raise argparse.ArgumentTypeError(f"must be an integer, such as 1000000 or 1e6; got {text!r}")


def emit(options: Any, answer: Answer) -> None:
    """Print an answer, for programs or for people; what is in it is no command to a terminal."""
    text = json.dumps(answer.to_dict(), indent=2) if options.json else str(answer)
    text = printable_lines(text)
    if not options.json:
        text = for_terminal(text, sys.stdout)
    known = sys.stdout.encoding or "utf-8"  # of a terminal that has no more than ASCII, say
    print(text.encode(known, "backslashreplace").decode(known))  # noqa: T201 (the output)


def scan_dataset(
    options: Any, built_for: ip.Dataset | None = None
) -> ip.Dataset | ip.Shards | None:
    """Scan the dataset that the command names, by its plan's pattern if it names none."""
    if options.shards is not None:
        if options.dataset is not None:
            raise IndexPlanError(
                "one of --dataset and --shards must be left out; got both; leave out --dataset"
            )
        with Progress("reading shards", "file") as progress:
            return ip.shard_sizes(options.shards, progress=progress)
    if options.dataset is None:
        if options.pattern is not None:
            raise IndexPlanError("--pattern needs --dataset; name the folder it is about, too")
        return None
    pattern = options.pattern or (built_for and built_for.pattern) or "**/*"
    return ip.Dataset.scan(options.dataset, pattern)


def open_either(path: str, columns: Sequence[str] = ()) -> tuple[ip.Plan, Manifest | None]:
    """Open a plan directory, or read a plan from a .json file, which has no manifest.

    The columns of a plan in a .json file are looked for in some files and folders of files.
    """
    if path.endswith(".json") and Path(path).is_file():
        # opened once, so that a file is hashed once, whatever number of fields looks at it
        given = [each if Path(each).is_dir() else ip.Column(each) for each in columns]
        try:
            return ip.Plan.from_json(Path(path).read_bytes(), columns=given), None
        except OSError as error:
            rule = f"{path} must be readable; got {error.strerror!r}"
            raise PlanFileError(f"{rule}; {cure_of(error, 'check its permissions')}") from error
        except IndexPlanError as error:
            raise PlanFileError(f"{path}: {error}") from error
    plan = ip.load(path)
    return plan, plan.order.manifest if isinstance(plan.order, ip.Stored) else None


def open_plan(options: Any) -> tuple[ip.Plan, Manifest | None, ip.Dataset | ip.Shards | None]:
    """Open what the command names, and compare it with the dataset if it names one too."""
    columns = getattr(options, "columns", ())
    plan, manifest = open_either(options.plan, columns)
    if columns and manifest is not None:
        rule = "--column needs a plan in a .json file, as a plan directory has its columns"
        raise IndexPlanError(f"{rule}; got {options.plan}; leave --column out")
    dataset = scan_dataset(options, manifest.build.dataset if manifest else None)
    if dataset is not None and manifest is None:
        rule = "--dataset needs a plan directory, which remembers its dataset"
        raise IndexPlanError(f"{rule}; got {options.plan}; leave --dataset out")
    if dataset is not None:
        plan = ip.load(options.plan, dataset=dataset)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    return plan, manifest, dataset


class Progress:
    """A bar with rate and remaining time on stderr, where somebody is looking."""

    def __init__(self, words: str, unit: str) -> None:
        self.words, self.unit = words, unit
        self.bar: ip.ProgressBar | None = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done; the first call, with 0, starts the bar."""
        if done == 0 and sys.stderr.isatty():
            self.bar = self._start()
        if self.bar is not None:
            self.bar(done, total)

    def _start(self) -> ip.ProgressBar | None:
        try:
            return ip.ProgressBar(self.words, self.unit)
        except IndexPlanError:  # without tqdm
            sys.stderr.write("to see progress: pip install 'indexplan[cli]'\n")
            return None

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()
