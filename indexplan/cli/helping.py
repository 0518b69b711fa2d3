"""The pages of help: verbs in groups, examples, and where the documentation is."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

ADDRESS = "Documentation"  # its name among [project.urls]


class Formatter(argparse.HelpFormatter):
    """Wraps paragraphs to the terminal's width, but no commands, which are there to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            each
            if each.startswith("  ") or "\n  " in each
            else super(Formatter, self)._fill_text(each, width, indent)
            for each in text.split("\n\n")
        )


def documentation() -> str:
    """Return the address of the documentation; empty if the package is not installed."""
    from importlib import metadata  # takes 20 ms, which only help should cost

    try:
        found = metadata.metadata("indexplan").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:  # such as in a checkout that is on PYTHONPATH
        found = []
    addresses: dict[str, str] = dict(each.split(", ", 1) for each in found)
    return addresses.get(ADDRESS, "")


def with_address(page: str) -> str:
    """Return a page of help that ends with the address of the documentation."""
    address = documentation()
    return f"{page}\ndocumentation: {address}\n" if address else page


def in_groups(parser: argparse.ArgumentParser, groups: Mapping[str, Iterable[str]]) -> str:
    """Return the help of a command whose verbs are listed in groups, a heading for each."""
    (verbs,) = (each for each in parser._actions if each.choices)  # noqa: SLF001
    listed = {each.dest: each for each in verbs._choices_actions}  # type: ignore[attr-defined]  # noqa: SLF001
    formatter: Any = parser._get_formatter()  # noqa: SLF001
    formatter.add_usage(parser.usage, parser._actions, [])  # noqa: SLF001
    formatter.add_text(parser.description)
    sections = {title: [listed[name] for name in names] for title, names in groups.items()}
    sections["options"] = [each for each in parser._actions if each.option_strings]  # noqa: SLF001
    for title, actions in sections.items():
        formatter.start_section(title)
        formatter.add_arguments(actions)
        formatter.end_section()
    formatter.add_text(parser.epilog)
    return str(formatter.format_help())
