"""The command line: every verb calls one public function, and says what it did.

Exit codes: 0, all is well; 1, a plan or file is wrong; 2, the command is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import indexplan as ip
from indexplan.errors import IndexPlanError, PlanFileError, wrong
from indexplan.files.format import Manifest
from indexplan.showing import show_batch, show_plan, show_step

if TYPE_CHECKING:
    from typing_extensions import Self

OK, WRONG_PLAN, WRONG_COMMAND = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except PlanFileError as error:
        return _complain(error, WRONG_PLAN)
    except IndexPlanError as error:
        return _complain(error, WRONG_COMMAND)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _complain(error: Exception, code: int) -> int:
    sys.stderr.write(f"indexplan: {error}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="indexplan",
        description="Which dataset index does rank r read at step t of epoch e?",
        epilog="Exit codes: 0 all is well; 1 a plan or file is wrong; 2 the command is wrong.",
    )
    parser.add_argument("--version", action="version", version=f"indexplan {ip.__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")

    def verb(name: str, run: Callable[[Any], int], words: str) -> argparse.ArgumentParser:
        command = verbs.add_parser(name, help=words, description=words.capitalize() + ".")
        command.set_defaults(run=run)
        command.add_argument("plan", metavar="PLAN", help="the plan directory")
        command.add_argument("--json", action="store_true", help="print JSON, for programs")
        return command

    _build_options(verb("build", _build, "write the order of some epochs to a plan directory"))

    show = verb("show", _show, "show a plan, one of its epochs, a step or a batch")
    for name in ("epoch", "sub-epoch", "step", "rank"):
        show.add_argument(f"--{name}", type=_number, metavar="N")
    _dataset_options(show, "name the files of a batch; complain if the dataset has changed")

    verify = verb("verify", _verify, "check a plan's laws, and every byte of its files")
    _dataset_options(verify, "complain if the dataset has changed")

    locate = verb("locate", _locate, "tell which step and rank read a sample")
    locate.add_argument("--index", type=_number, required=True, metavar="N")
    locate.add_argument("--epoch", type=_number, required=True, metavar="N")
    _dataset_options(locate, "complain if the dataset has changed")
    for command in (show, verify, locate):
        words = "ranks, instead of the plan's"
        command.add_argument("--world-size", type=_number, metavar="N", help=words)
    return parser


def _build_options(build: argparse.ArgumentParser) -> None:
    add = build.add_argument
    add("--num-samples", type=_number, metavar="N", help="samples in the dataset; 1e9 will do")
    _dataset_options(build, "take the number of samples from it, and remember its identity")
    add("--order", choices=("shuffle", "block-shuffle", "sequential"), default="shuffle")
    add("--seed", type=_number, default=0, metavar="N")
    add("--block-size", type=_number, metavar="N", help="samples in a block of a block-shuffle")
    add("--window", type=_number, metavar="N", help="blocks that are mixed together (1)")
    add("--world-size", type=_number, metavar="N", help="ranks; left out, the plan leaves it open")
    sizes = "units per rank and step: 256, nested 5x3, or phases '0:512 250000:768'"
    add("--batch-size", metavar="SIZE", help=sizes)
    add("--global-batch-size", metavar="SIZE", help="the same, over all ranks")
    add("--sub-epochs", type=_number, default=1, metavar="N")
    add("--remainder", choices=("spread", "drop", "pad", "carry"), default="spread")
    add("--epochs", type=_number, default=1, metavar="N", help="epochs to write, from 0 on (1)")


def _dataset_options(command: argparse.ArgumentParser, words: str) -> None:
    command.add_argument("--dataset", metavar="PATH", help=f"a folder or a .npy file: {words}")
    command.add_argument("--pattern", metavar="GLOB", help="which files of the folder (**/*)")


def _number(text: str) -> int:
    """Read an integer, also as 1e9 or 1_000_000."""
    try:
        number = Decimal(text)
        if number == number.to_integral_value() and abs(number.adjusted()) < 50:
            return int(number)
    except InvalidOperation:
        pass
    raise argparse.ArgumentTypeError(f"must be an integer, such as 1000000 or 1e6; got {text!r}")


def _print(options: Any, data: dict[str, Any], words: str) -> None:
    print(json.dumps(data, indent=2) if options.json else words)  # noqa: T201 (the output)


def _dataset(options: Any, built_for: ip.Dataset | None = None) -> ip.Dataset | None:
    """Scan the dataset that the command names, by its plan's pattern if it names none."""
    if options.dataset is None:
        if options.pattern is not None:
            raise IndexPlanError("--pattern needs --dataset, the folder it is about")
        return None
    pattern = options.pattern or (built_for and built_for.pattern) or "**/*"
    return ip.Dataset.scan(options.dataset, pattern)


def _load(options: Any) -> tuple[ip.Plan, Manifest, ip.Dataset | None]:
    """Open the plan directory, and compare it with the dataset if the command names one."""
    manifest = ip.Stored(options.plan).manifest
    dataset = _dataset(options, manifest.build.dataset)
    plan = ip.load(options.plan, dataset=dataset)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    return plan, manifest, dataset


def _order(options: Any, num_samples: int) -> ip.Order:
    if options.order == "block-shuffle":
        if options.block_size is None:
            raise IndexPlanError("--order block-shuffle needs --block-size, the samples of a shard")
        window = 1 if options.window is None else options.window
        return ip.BlockShuffle(num_samples, options.block_size, window, options.seed)
    for name in ("block_size", "window"):
        if getattr(options, name) is not None:
            raise IndexPlanError(f"--{name.replace('_', '-')} needs --order block-shuffle")
    if options.order == "sequential":
        return ip.Sequential(num_samples)
    return ip.Shuffle(num_samples, options.seed)


def _build(options: Any) -> int:
    dataset = _dataset(options)
    if (options.num_samples is None) == (dataset is None):
        raise IndexPlanError("exactly one of --num-samples and --dataset must be given")
    num_samples = dataset.num_samples if dataset else options.num_samples
    sizes: dict[str, Any] = {
        name: ip.parse_schedule(text)
        for name in ("batch_size", "global_batch_size")
        if (text := getattr(options, name)) is not None
    }
    if not sizes:
        raise IndexPlanError("one of --batch-size and --global-batch-size must be given")
    if not 1 <= options.epochs <= 2**32:
        raise wrong("--epochs", "from 1 to 2**32", options.epochs)
    plan = ip.Plan(
        _order(options, num_samples),
        world_size=options.world_size,
        sub_epochs=options.sub_epochs,
        remainder=options.remainder,
        **sizes,
    )
    with _Progress("building", "idx") as progress:
        saved = ip.save(
            plan, options.plan, epochs=range(options.epochs), dataset=dataset, progress=progress
        )
    words = (
        f"{saved.path}: {saved.num_bytes:,} bytes; {saved.num_written} chunks written, "
        f"{saved.num_kept} were there already"
    )
    _print(options, {**asdict(saved), "fingerprint": plan.fingerprint}, words)
    return OK


def _show(options: Any) -> int:
    plan, manifest, dataset = _load(options)
    needed = [("sub_epoch", "epoch"), ("step", "epoch"), ("rank", "step")]
    for name, other in needed:
        if getattr(options, name) is not None and getattr(options, other) is None:
            raise IndexPlanError(f"--{name.replace('_', '-')} needs --{other}")
    epoch, sub_epoch, step, rank = options.epoch, options.sub_epoch, options.step, options.rank
    if rank is not None:
        where = {"epoch": epoch, "sub_epoch": sub_epoch, "step": step, "rank": rank}
        data, words = show_batch(plan, where, dataset)
    elif step is not None:
        data, words = show_step(plan, epoch, sub_epoch, step)
    else:
        data, words = show_plan(plan, manifest, epoch, sub_epoch)
    _print(options, data, words)
    return OK


def _verify(options: Any) -> int:
    plan, _, _ = _load(options)
    if plan.world_size is None:
        plan = plan.replace(world_size=1)  # laws of ranks hold for any number; check them for one
    with _Progress("verifying", "B") as progress:
        report = ip.verify(plan, progress=progress)
    _print(options, report.to_dict(), str(report))
    return OK if report.ok else WRONG_PLAN


def _locate(options: Any) -> int:
    plan, _, _ = _load(options)
    where = plan.locate(options.index, options.epoch)
    if where.step < 0:
        words = f"no step reads sample {options.index} in epoch {options.epoch}"
    else:
        words = (
            f"epoch {where.epoch}, sub-epoch {where.sub_epoch}, step {where.step}, "
            f"rank {where.rank}, slot {where.slot}"
        )
    _print(options, where._asdict(), words)
    return OK


class _Progress:
    """A bar with rate and remaining time on stderr, where somebody is looking."""

    def __init__(self, words: str, unit: str) -> None:
        self.words, self.unit = words, unit
        self.bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        if done == 0 and sys.stderr.isatty():
            self.bar = self._start(total)
        if self.bar is not None:
            self.bar.update(done - self.bar.n)

    def _start(self, total: int) -> Any:
        try:
            from tqdm import tqdm
        except ImportError:
            sys.stderr.write("to see progress: pip install 'indexplan[cli]'\n")
            return None
        return tqdm(total=total, desc=self.words, unit=self.unit, unit_scale=True, mininterval=0.2)

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()


if __name__ == "__main__":
    sys.exit(main())
