"""The reference shows every public name, with all that its docstring says."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag

import indexplan as ip
import indexplan_fetch
import indexplan_jax.grain
import indexplan_torch
from tests.test_public_names import OF_OWN_ORDERS

NAMES = [
    *(f"indexplan.{name}" for name in ip.__all__ if name not in ("plot", "testing", "types")),
    *(f"indexplan.orders.{name}" for name in OF_OWN_ORDERS),
    *(f"indexplan.types.{name}" for name in ip.types.__all__),
    *(f"indexplan.plot.{name}" for name in ip.plot.__all__),
    *(f"indexplan.testing.{name}" for name in ip.testing.__all__),
    *(f"indexplan_fetch.{name}" for name in indexplan_fetch.__all__),
    *(f"indexplan_jax.grain.{name}" for name in indexplan_jax.grain.__all__),
    *(f"indexplan_torch.{name}" for name in indexplan_torch.__all__),
    *(f"indexplan.Plan.{name}" for name, _ in inspect.getmembers(ip.Plan, inspect.isfunction)),
]
# a section of a docstring, and the names of an entry of it
SECTION = re.compile(
    r"^([A-Z][\w ]+)\n-+\n(.*?)(?=^[A-Z][\w ]+\n-+\n|\Z)", re.DOTALL | re.MULTILINE
)
ENTRY = re.compile(r"^(\w[^:\n]*|\*+\w+)(?: : .*)?$", re.MULTILINE)


@pytest.fixture(scope="session")
def entries(site: Path) -> dict[str, Tag]:
    """What the reference shows, by the name in its heading."""
    found = {}
    for page in (site / "reference").glob("*.html"):
        html = BeautifulSoup(page.read_text(), "html.parser")
        for shown in html.select("div.doc-object"):
            heading = shown.find(class_="doc-heading", id=True)
            if heading is not None and heading.find_parent(class_="doc-object") is shown:
                found[str(heading["id"])] = shown
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if "._" not in name])
def test_entry(name: str, entries: dict[str, Tag]) -> None:
    """A name has an entry, which lists the parameters, results and errors of its docstring."""
    owner, _, last = name.rpartition(".")
    value = getattr(ip.Plan if owner == "indexplan.Plan" else importlib.import_module(owner), last)
    shown = entries[name]
    own = shown.find(class_="doc-contents")
    assert own is not None
    doc = inspect.getdoc(value) or ""
    assert words(doc.split("\n\n")[0]) in words(own.get_text(" "))
    expected = {}
    for title, text in SECTION.findall(doc):
        expected[title] = len(ENTRY.findall(text)) if title in LISTS else 0
        if title == "Parameters":  # an entry of the reference has one name
            expected[title] += sum(names.count(",") for names in ENTRY.findall(text))
    assert expected == {title: count for title, count in sections(own) if title in expected}


LISTS = ("Parameters", "Attributes")


def words(text: str) -> str:
    """The letters and digits of a text, whatever marks and spaces lie between."""
    return re.sub(r"\W+", "", text)


def sections(own: Tag) -> list[tuple[str, int]]:
    """The sections of an entry itself, and how many parameters or attributes they list."""
    found = []
    for title in own.select(".doc-section-title, details > summary"):
        if title.find_parent(class_="doc-contents") is own:
            name = title.get_text().strip(" :")
            listed = title.parent.find_next_sibling("ul")
            items = listed.find_all("li", class_="doc-section-item") if name in LISTS else []
            found.append((name, len(items)))
    return found
