"""Turn the library's error messages into the command's words: --world-size, not plan.replace."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection

from indexplan.errors import IndexPlanError

# cures for those who write Python, and for those who type a command
CURES = (
    (r"use plan\.replace\(balance=.*\)", "build a plan with --balance"),
    (r"plan\.replace\((\w+)=(\w+|\.\.\.)\)", r"\1=\2"),
    (r"load that plan and use plan\.replace or plan\.resume, or ", ""),
    (r"pass one of plan\.steps\(\.\.\.\)",
     "see how many there are with `indexplan show`"),
    (r"plan\.account (says|counts)", r"`indexplan show` \1"),
    (r"pass len\(dataset\)", "pass how many samples there are"),
    (r"pass len\(tokens\)", "pass how many tokens there are"),
    (r"read it with plan\.units", "see its batches with `indexplan show`"),
    (r"call plan\.locate_all or plan\.order\.count", "count them by `indexplan draws`"),
    (r", or ip\.reads for some steps", ""),
    (r"ask ip\.reads for some ranks at a time", "raise ranks_per_node"),
    (r"use indexplan\.verify", "use `indexplan verify`"),
    (r"pass what Shards.to_json returned, or read the sizes again with shard_sizes",
     "write it again with `indexplan shards`"),
    (r"a tuple such as \(5, 3\)", "5x3"),
    (r"columns= or --column", "--column"),
    (r"indexplan\.(Split|folds|Shuffle|Subset)", r"\1"),  # as --order is written
)  # fmt: skip


class OrderError(IndexPlanError):
    """An error about an order, whose fields may have names of options, such as batch_size."""


def said(error: IndexPlanError, parser: argparse.ArgumentParser | None) -> str:
    """Return the message of an error in the words of a verb, whose parser knows its options."""
    if parser is None or isinstance(error, OrderError):
        return in_options(str(error), [])
    return in_options(str(error), [*parser._option_string_actions])  # noqa: SLF001


def in_options(message: str, options: Collection[str]) -> str:
    """Write the fields that a message is about, and those of its cure, as options.

    What the message quotes after "got" stays as it is, and so does its rule.
    """
    what, must, rest = re.split(r"( (?:must|needs?) |$)", message, maxsplit=1)
    rule, last, cure = rest.rpartition("; ")
    for pattern, words in CURES:
        cure = re.sub(pattern, words, cure)
    for option in sorted(options, key=len):
        name = option.lstrip("-").replace("-", "_")
        # `step` is a word of prose, too; and what follows a path is a field of that file
        if what == name or ("_" in name and ": " not in what):
            what = re.sub(rf"(?<![\w./'-]){name}(?![\w./'(=])", option, what)
        if "_" in name:
            cure = re.sub(rf"(?<![\w./'-]){name}(?![\w./'(=])", option, cure)
        cure = re.sub(rf"(?<![\w./'-]){name}=(\w+)(?![\w)])", rf"{option} \1", cure)
        cure = re.sub(rf"(?<![\w./'-]){name}=\.\.\.", option, cure)
    return f"{what}{must}{rule.replace('; got None', '; got none')}{last}{cure}"
